"""When servers run out and what to order by which date, from what was measured.

samples.py     the load monitor's samples as daily tables and sums, by Spark
trend.py       a straight line with its band, and when it meets a limit
order.py       from trends to an answer: what to order by when
recording.py   any table of observations as load, by Spark
sizing.py      from a recording's load to the servers it needs
forecast.py    the two courses from end to end
"""
