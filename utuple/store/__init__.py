"""Where a server keeps uTuples.

    contract     what a store promises: the specification, in comments
    memory       the plain twin: dictionaries, and `matches` for every search
    postgres/    the real one
    turns        whose search gets the next connection (pure)

One suite, tests/conformance, runs over both stores.
"""
