"""Matching: which stored templates an arriving batch meets. Pure, but for `compiling`.

`index` holds every EF and CA of the server. Those that ask for one address and nothing else are found by
dictionary (`by_address`; very many of one family in `cells`). The others are in the `box_index`: each is a box
(`boxes`) of its `family`, found by bitmaps over buckets (`bitmaps`, with loops in `kernels` and `compiled`), and
what a box does not say is verified row by row. `matched` is what comes out: row numbers per template.
`expiries` knows when each template's time has come.
"""
