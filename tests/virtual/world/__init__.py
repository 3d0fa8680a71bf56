"""What a virtual cluster stands on; it knows no program of ours.

loop         one thread, and time that jumps; lives of processes, which end as by kill -9 or stand as by SIGSTOP
world        the loop, the dice of the seed, the history and what is told about it
network      calls that are delayed, lost, doubled and overtaken; links that are cut
streams      messages in order, until the connection breaks
transport    the client's transport on that network
disk         a server's database: it survives its server, and crashes by itself
"""
