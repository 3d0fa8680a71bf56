"""Planning: which load shall move now. Pure.

A `snapshot` of the cluster goes in, moves come out of `planner.plan`. The rules are `relief` (help for the
overloaded), `shrink` (lines become small again), `merging` (and fewer) and `repair` (servers that come, go or fall silent);
they work on a `board` and keep within `policy` and `history`. `advice` says what no move can mend. `partitioning` weighs help against
a layout for a section with many EFs; no rule asks it yet.
"""
