"""From a caller's values to calls.

Single events of one turn are joined by `coalescing`; many are cut into `slices` and built as columns by `rows`
(`emit`, `command_many`). `batcher` has a `lane` for each server. Commands: `command`, `simple_commands`, and their
`receipt`.
"""
