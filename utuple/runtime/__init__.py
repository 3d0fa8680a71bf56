"""What every program needs around its core.

program, options         an event loop, an ordered stop, errors as one line; the options all programs have
clock                    the time, for shells: cores are given it
tasks, backoff           every task has an owner; when what died is started again
begun, aside             a coroutine that runs at once up to its first wait; long pure work in a thread
channel, channels        gRPC channels and servers with our limits; the pool of one program
announcer                tells the managers of a server and its lines
logs, log_file, trouble  one phrase plus fields, one line each; in a file of limited length; what goes wrong again and again, seldom
postgresql/              the embedded PostgreSQL
"""
