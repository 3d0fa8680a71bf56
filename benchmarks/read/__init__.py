"""The benchmark `read`: stored searches among ten million EAs of one key."""
