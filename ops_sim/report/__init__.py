"""Reports: what a plan says to people. A report is a value; builders make it from tables, renderers write it."""
