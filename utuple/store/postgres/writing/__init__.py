"""What one transaction writes: many EAs by `copy`, few by `insert`, EFs and CAs by
`templates`; `removal` deletes what a move took elsewhere.
"""
