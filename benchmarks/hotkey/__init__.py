"""The benchmark `hotkey`: all load on one key, on more and more servers."""
