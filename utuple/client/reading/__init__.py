"""Stored matches: `read` and what it gives.

`merge` reads every member of one epoch and drops repeats, `paging` does so in order of time, page by page, and
`results` is what the caller iterates.
"""
