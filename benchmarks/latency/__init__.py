"""The benchmark `latency`: from `emit` to the handler of a live watcher."""
