"""The assignment manager: an in-memory DHT of peers that answers which line a key belongs to.

A directory, never the judge: it holds the highest epoch it has heard of, and what it does not know it
does not answer.
"""
