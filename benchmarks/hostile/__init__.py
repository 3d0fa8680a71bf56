"""`utuple bench hostile`: strangers at a uTupleServer's port, and what a well-behaved client notices of them.

attacks      what each stranger says, as bytes       pure
attacker     a process that says it, on many connections at a time, from an address of its own
client       a process that emits at a steady pace, and opens new connections now and then
benchmark    one attack after the other, with quiet between them; the server's memory, the client's delays
"""
