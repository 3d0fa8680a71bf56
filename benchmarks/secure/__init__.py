"""`utuple bench secure`."""
