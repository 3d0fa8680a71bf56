"""The sCA server (section 3.2 of the paper): simple commands, matched with CFs in memory.

    index, matcher         the CFs by subject, type and address; commands meet them           pure
    commands               a batch of commands, and the check of its rows                      pure
    readers, outbox        which stream holds which CF, what waits there and is unconfirmed    pure
    filling/               the CFs of every uTupleServer, read before anything is denied
    sharing/               the other sCA servers: whose a device is, while they come and go
    core                   all of that: registers, attaches, matches, hands over               pure
    judging, shares        of a secured cluster: who may do what, and how much of it            pure
    service, session       gRPC's face; one reader's stream
    transport              the calls it makes
    messages               between the protocol and the core

A command passes service → messages → sharing/sorting (is it for us?) → core (matcher, readers) → outbox → session, and its
confirmation comes back the same way.
"""
