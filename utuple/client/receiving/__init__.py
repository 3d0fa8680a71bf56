"""What reaches a program: deliveries to watches and commands to devices.

    session, sessions        one stream to one server, shared by all formals of a space; all of them
    joined                   what all formals of a stream have to say, in few messages
    link                     one formal at one server: what has to be said there, and how far the server may run ahead
    formal                   an EF or CF that is open here: its links, and the queue that the application takes from
    progress, repeats        what came, was acknowledged and was seen before (both pure)
    drops, hands             what was dropped while it was away; what the program has in hand, to be settled one by one
    gathered                 deliveries that came together, acknowledgements that leave together
    delivery, deliveries     what the application is given, and what it iterates; `watch` and `device` are the two kinds

A delivery passes session → link → formal (repeats dropped, progress noted) → deliveries.
"""
