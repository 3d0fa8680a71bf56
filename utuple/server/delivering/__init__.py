"""Delivering: how matches reach their readers, and commands their devices.

`cursors` decides (pure) how far each reader has been told and what comes next; `dispatcher` carries it out, with
searches of the store (`searching`) and an `outbox` for each stream. `commands` finds the devices of a command,
`devices` knows which are attached, and a `handover` who waits for a command and which devices have it.
"""
