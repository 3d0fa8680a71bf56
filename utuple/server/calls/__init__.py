"""The calls of a uTupleServer: from messages to requests, and back.

`service` is gRPC's face of `handlers` and `moves`. A client's registrations come on a `register_stream`, deliveries
leave on a `deliver_stream`. `intake` decodes and `admission` checks every row; what is large is decoded by a
thread (`offload`).
"""
