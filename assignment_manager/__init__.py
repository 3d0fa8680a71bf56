"""The assignment manager: an in-memory DHT of peers that answers which line a key belongs to.

A directory, never the judge: it holds the highest epoch it has heard of, and what it does not know it
does not answer.

    ring, peer            which managers hold which line: consistent hashing                          pure
    directory             what this one holds: the ring, its lines and copies, the servers' addresses  pure
    gossip, digest        which managers live; whether two of them know the same                       pure
    manager               all of that as one machine: news in, what to pass on out                     pure
    service, transport    the shell: takes calls, and calls other managers
    wire, answers         what comes in is checked, what goes out is encoded once
"""
