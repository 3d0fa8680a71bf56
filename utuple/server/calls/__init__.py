"""The calls of a uTupleServer: from messages to requests, and back.

    service            gRPC's face: one method a call, errors to status                              dull
    handlers, moves    the same without gRPC: what each call does
    register_stream    a client's registrations on one stream, and their answers
    deliver_stream     a reader's stream: its messages to the dispatcher, its outbox to the wire
    intake             messages to requests, and answers back; what is large by a thread
    admission          every row checked against the model's rules                                   pure
    readers, parking   readers as an operator sees them, and what was parked for them
    commanded          what has become of a stored command
    status_parts       of the status: what its sections hold and cost
    refill             the CFs that belong to one sCA server

A registration comes on `register_stream` in the turn in which it arrived, is decoded by `intake`, waits in the
engine's queue as a future, and is answered by that future's callback.
"""
