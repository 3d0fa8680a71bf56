"""The SDK's verbs, by HTTP.

asking      query parameters and JSON bodies -> the SDK's arguments, checked       pure, but for now
body        a request's body, bounded
events      POST and GET /v1/events; many by `ingest`, out by `formats`
live        /v1/events/live and a device's commands, as server-sent events
resuming    what a named reader was sent last: Last-Event-ID                        pure
commands    POST /v1/commands, and receipts that can be asked for again
"""
