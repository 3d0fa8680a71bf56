"""`utuple bench slow-reader`: what a reader that stopped costs the writer and the others; `idle-readers`: what readers cost that
are there and get nothing. `programs` are the processes that emit, watch and stop."""
