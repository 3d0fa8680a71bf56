"""`utuple bench match`: the server's template index alone."""
