"""The command line: `utuple …`. The only place that prints, and the only one that knows every program."""
