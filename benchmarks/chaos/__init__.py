"""`utuple chaos`: a real cluster under faults, and the checker its history is judged by."""
