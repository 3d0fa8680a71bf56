"""The uTupleServer: one writer, one order; matches, stores and delivers.

    calls/        the protocol's face: messages to requests, and back
    writing/      everything registered here, in one order: the engine
    matching/     which EFs and CAs an arriving batch meets
    delivering/   how matches reach their readers, and commands their devices
    moving/       this server's part in moves of load
    ports         what these folders ask of each other, so that none needs the whole engine
    config        every knob, with its reason and unit

A registration passes `calls` → `writing` (judged, numbered, committed; matched by `matching` meanwhile) → `delivering` → the reader's
stream. A step of a move passes the same writer.
"""
