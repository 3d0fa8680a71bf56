"""Looking at a cluster: status, table, servers, readers.

A command takes one snapshot (`utuple.admin`) and prints it, as tables for people (`show`, `show_moves`) or as JSON.
"""
