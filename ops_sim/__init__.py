"""Capacity planning: how many servers to buy, when, at what risk. Spark's place, and nobody else's.

What decides (the daily rule, the cost model, the demand) is plain Python or NumPy without Spark; Spark spreads
it over scenarios. From the programs it takes pure modules only: we simulate what we run.
"""
