"""Writing: everything registered at this server, in one order.

`engine` is the loop: what has queued (`queue`) is judged by `writer` (pure: epochs, retries, seqs), committed to the
store as one `transaction`, answered and handed to delivery. `backpressure` refuses what would be answered too
late, `meter` measures, `maintenance` collects what is dead.
"""
