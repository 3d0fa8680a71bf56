"""The protocol (utuple.proto): generated code, and the codec between it and the model.

codec        uTuples: columns of EAs and CFs, packed EFs and CAs; unknown fields are refused
cluster      lines, servers, load and moves
deliveries   what a reader's stream carries beside deliveries
announcing   what a server says of itself to a manager
pieces       rows in messages of a size that every program takes
status       our errors as gRPC's status codes, and back
"""
