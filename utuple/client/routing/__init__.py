"""Where a uTuple goes, and what is done when it does not arrive.

`lines` knows the table, `route` says which members, `choice` takes one of several. `registrar` sends to one member,
`every_member` to all of one epoch (R2); `retry` decides what follows from an `outcome`.
"""
