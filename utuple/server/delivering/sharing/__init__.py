"""Deliveries that are settled one by one, by one program or by several that share a reader.

ledger      who has each delivery, how often it was tried, when it comes again, and what is parked      pure
brought     ledgers that a drain brings here, until they count                                              pure
seats       carries that out: distributes over streams, reads again from the store, keeps notes
"""
