"""`utuple bench plan`: see benchmark.py."""
