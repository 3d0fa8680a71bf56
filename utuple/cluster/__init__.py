"""The cluster as values: lines, the table, its changes, load. Pure."""
