"""HTTP/2 (RFC 9113) as either end of a connection has it. What a peer may do, and what ends it when it does more, is all here.

    frames, headers     bytes to values and back, and what can be wrong with them by themselves       pure
    settings            what the ends tell each other first                                           pure
    limits              what a peer may ask: every limit with its name, default and reason            pure
    stream              one stream: its windows, its messages, its queue, its end
    turns               what may wait, of all connections of a server: one piece in a turn of the loop
    intake              reading in turns: some frames of one connection, then others; and not at all from who owes us
    keepalive           whether the peer is still there, and goes on with what it began
    connection          one connection: frames to streams, windows, budgets, GOAWAY

Bytes come in by `Connection.data_received`, pass `Intake` as frames and reach their `Stream` as pieces of messages; what a
stream sends goes straight to `Connection.write`.
"""
