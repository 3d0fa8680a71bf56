"""What is asked of PostgreSQL.

`conditions` and `data_conditions` turn a template into SQL that selects what `matches` accepts. `portals` read
results piece by piece in seq order, `paging` in order of time; `prepared` statements answer the short questions.
"""
