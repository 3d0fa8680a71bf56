"""gRPC's protocol on HTTP/2, by asyncio alone: what grpcio does, for a tenth of its processor time a message.

    http2/                      HTTP/2 as either end has it: frames, streams, the connection, and every limit
    messages, status            gRPC's messages on a stream, and how a call ended
    peer, tls                   who is at the other end, and how it proves that
    channel, outbound, calls    a client, behind grpc.aio's own interface
    server, arrivals, inbound,  a server, behind the same: who is let in; every call is authorised in one place before its
      context                   handler runs
    duplex                      what a program sees of a busy stream, as a protocol

The rest of the tree uses `Channel`, `Server`, and for busy streams `Call` and `duplex`. A peer may be any other gRPC
implementation, grpcio among them (tests/system/test_transport.py), and whoever it is, it may ask for no more than `http2/limits`
says. Left out is what nobody here asks for: compression, server push, several addresses a name. See docs/transport.md.
"""
