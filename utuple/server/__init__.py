"""The uTupleServer: one writer, one order; matches, stores and delivers."""
