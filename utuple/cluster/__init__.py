"""The cluster as values: lines, the table, its changes, load, moves. Pure.

    line, table            a section with its epoch and its members; all lines, the newest epoch winning
    dimension              what EAs and EFs say in one dimension by which a line can be partitioned
    layout                 how the EFs of a line are partitioned by dimension: who keeps an EF, where an EA may go
    newest                 the newest of what was heard, point by point of the hash space
    changes                from a line to the lines of the next epoch: figures 3 to 5 of the paper, and Appendix A
    move, record           one type of move for whoever plans, orders or carries it out; and what its home keeps of it
    load                   what every answer says of a server's queue, and the wait one may expect
    address                HOST:PORT
    on_off_queue           the queue of a reader that comes and goes, as a model for planning

A planner makes a `move` from `load` and `table`; its home makes the next `line` of it by `changes` and keeps a `record`.
"""
