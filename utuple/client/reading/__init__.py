"""Stored matches.

read                     one `read`: every member of one epoch, repeats dropped, and what the caller iterates
paging                   the same in order of time, page by page
"""
