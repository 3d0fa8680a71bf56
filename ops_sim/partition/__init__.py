"""A hot key with many EFs, partitioned by dimension instead of copied (paper 002, BlueDove): what that gains, simulated.

workload    the paper's EFs and EAs: four dimensions, ranges that crowd around a hot spot in each
study       members that scan their EFs, EAs that go where the wait is shortest: the gain over full replication, over
            a DHT of one dimension, over a random choice, and by the number of axes, beside what the paper prints
"""
