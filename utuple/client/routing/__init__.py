"""Where a uTuple goes, and what is done when it does not arrive.

lines                    the lines and servers that this client knows, looked up once and kept
route                    which members it may or must go to, and the best of several (pure)
registrar                EAs and CFs, to one member each
every_member             EFs and CAs, to every member of one epoch (R2)
outcome, retry, retrier  what an answer means; what follows from it (pure); and the one driver that waits and goes on
"""
