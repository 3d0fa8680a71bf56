"""gRPC's protocol on HTTP/2, by asyncio alone: what grpcio does, for a tenth of its processor time a message.

    frames, messages, headers   bytes to values and back                     pure
    stream, connection          one HTTP/2 stream, one connection: windows, keepalive, ends
    calls, channel              a client, behind grpc.aio's own interface
    server                      a server, behind the same

A peer may be any other gRPC implementation, grpcio among them (tests/system/test_transport.py). Left out is what nobody
here asks for: TLS, compression, server push, several addresses a name.
"""
