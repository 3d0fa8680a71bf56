"""`utuple bench fair`: one identity asks far beyond its share and does not heed "try again after"; what the others notice.

messages     batches of events and of commands, as they travel
transport    calls that may be refused
greedy       a process that registers and commands as fast as it is answered, on several streams
client       a process that emits and commands at a steady pace
benchmark    both at a secured server and sCA server, with and without the greedy one, in turns
"""
