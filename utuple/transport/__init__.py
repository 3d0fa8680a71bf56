"""gRPC's protocol on HTTP/2, by asyncio alone: what grpcio does, for a tenth of its processor time a message.

    frames, messages, headers   bytes to values and back                     pure
    status                      how a call ended
    stream, connection          one HTTP/2 stream, one connection: windows, backpressure, keepalive, ends
    channel, calls              a client, behind grpc.aio's own interface
    peer, tls                   who is at the other end, and how it proves that
    server, context             a server, behind the same; every call is authorised in one place before its handler runs
    duplex                      what a program sees of a busy stream, as a protocol

The rest of the tree uses `Channel`, `Server`, and for busy streams `Call` and `duplex`. A peer may be any other gRPC
implementation, grpcio among them (tests/system/test_transport.py). Left out is what nobody here asks for:
compression, server push, several addresses a name. See docs/transport.md.
"""
