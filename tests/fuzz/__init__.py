"""Fuzzing: bytes that nobody would send, to everything that reads what strangers send.

    targets      what is tried: one function for each reader of bytes or words, with what it may raise
    seeds        something right for each, to begin with
    mutating     something wrong out of something right, by dice                             pure
    engine       inputs, what they reach in the code, and what breaks

`python -m tests.fuzz --inputs 1000000` shares so many among all targets; `make test` tries a few thousand.
"""
