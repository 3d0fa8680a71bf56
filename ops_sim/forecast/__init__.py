"""When servers run out and what to order by which date, from what was measured.

samples.py     the load monitor's samples as daily tables and sums, by Spark; `forecast` goes from end to end
trend.py       a straight line with its band, and when it meets a limit
order.py       from trends to an answer: what to order by when
recording.py   any table of observations as load, by Spark; `load_of` goes from end to end
sizing.py      from a recording's load to the servers it needs

Samples become daily tables and, for each server and resource, the sums of a straight line (`schema.GROWTH`); these become trends,
and trends an answer. A recording has no growth: its busiest hour and its EAs a day become a number of servers. Spark reads and
sums up; whatever decides is pure.
"""
