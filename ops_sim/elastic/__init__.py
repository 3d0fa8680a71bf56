"""Elasticity tried on a load before it is let loose: the live controller (`load_monitor.elastic`), on simulated machines. Pure.

scenario    the table [simulation] of elastic.toml: a load over time, how long things take, prices
simulation  minute by minute: what the controller decides, and what becomes of it
cost        what the machines cost; just-enough beside machines of fixed sizes
paper/      the runs of the paper on just-enough elasticity, section 6.2, as scenarios
"""
