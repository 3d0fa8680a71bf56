"""Stored matches: `read` and what it gives.

merge                    all of them, from every member of one epoch, in the order in which servers give them
paging                   in order of time, page by page
results                  what the caller iterates, and how long it waits
"""
