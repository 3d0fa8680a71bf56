"""The benchmark `ingest`: application A from the SDK's `emit_many` to a reader's acknowledgement."""
