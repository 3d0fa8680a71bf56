"""The CFs of every uTupleServer, read before anything is denied.

refill      which servers were read, and so which keys may be served                pure
refilling   keeps it up to date: the table from any manager, the CFs of every server in it
"""
