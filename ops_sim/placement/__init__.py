"""Where load lies when keys are uneven: the load monitor's own planner, day by day, beside a traditional DHT.

scenario.py       what is asked: servers, devices, keys and their skew
splitmix.py       numbers that look random and follow from a seed
keys.py           where keys lie in the hash space, and each one's share of the load
slots.py          the table of lines, with its members as NumPy columns
usage.py          processing and memory of each server, by the cost model
cluster.py        keys, lines and usage together: devices come, uTuples expire, moves are made
dynamic_help.py   the proposed method: loads as a snapshot of the monitor, the planner's moves made in the cluster
dht.py            the existing method: virtual servers on a ring
study.py          one scenario under one method: a row a day
on_spark.py       many of them at once, and the figures of each

A study goes day by day. The method (dynamic help or the DHT) lets servers join, is shown one or two moments of the day, and moves
load until nothing moves; then it says how much of each server is used. Spark runs many studies side by side, in waves of 50
days: a study's whole state comes back with its rows and goes into the next wave.
"""
