"""Moving load: help, split, drain and release, as one server takes part in them.

Decided in the writer's order, pure:
    steps        what reaches the writer: the steps of a move
    home         the rules a home keeps; participant the rules of a learner, a next home, a drained server and its heir
    state        both of them, made from the notes in the store (notes)
    apply        one step inside the writer's batch
    taught       what a learner was taught, and what changes at the home meanwhile

Carried out at the home of a move, over the network:
    driver       takes each move from its record to its end, also after a restart
    preparing    one attempt to reach the commit: teaching brings EFs and CAs to a learner, shipping rows to an heir
    announcing   tells everyone afterwards
    older        what is left of earlier layouts of a partitioned line, and EFs that are of no more use here
    servers      the other servers by name; transport is the real seam to them
"""
