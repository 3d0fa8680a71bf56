"""Matching: which stored templates an arriving batch meets. Pure, but for `compiling`.

`templates` holds every EF and CA of the server. Those that ask for one address only are found by dictionary
(`by_address`); the others are boxes (`boxes`) of one `family` in the `index`, found by bitmaps over buckets
(`bitmaps`, `kernels`, `compiled`) and then verified row by row (`rows`).
"""
