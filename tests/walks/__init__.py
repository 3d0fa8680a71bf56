"""Walks: one EA, one read, one command to an area and one help, traced through a real cluster in one process.

cluster   assignment manager, servers and sCA server as tasks of this process, over real gRPC and PostgreSQL
trace     which functions of the product ran, in order, with counts
walking   the four walks
page      docs/walks.md: written by `make walk`, compared by tests/system/test_walks.py
"""
