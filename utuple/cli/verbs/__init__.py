"""The verbs of the SDK on the command line: emit, watch, read, serve, command.

What is typed becomes arguments of the SDK (`templates`, `parsing`); events come and go as JSON lines (`json_lines`, `stdin`).
"""
