"""Benchmarks: `utuple bench NAME`. Each runs real programs on this machine, several times, and says what it
saw, what was wanted and whether that was met."""
