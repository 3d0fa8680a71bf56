"""The operator's side of a cluster: what one can ask it, and what one can do to it. No terminal here.

transport   the calls: short time-outs, an answer or a plain reason why there is none
snapshot    everybody asked once: the table, and what every program says of itself (`programs`)
moves       the records of moves that homes keep, as an operator reads them
watching    snapshots again and again, until something is so or a limit comes
leaving     whether a server that drains has left, and what still keeps it
choice      what an operator's order chooses by itself: whom to help, where, by whom
commands    a command by its id: which devices have it
metrics     a snapshot in Prometheus's terms
founding    the first table of a cluster, given once

The command line, the metrics, the local supervisor and the demo all look at a cluster through this package.
"""
