"""The operation of a growing cluster (section 4.2): each day demand is predicted, and servers are ordered.

demand.py, draws.py   how many devices there are, day by day, in one possible world; the random numbers of it
policy.py             the operator's rule: when to buy, and how many
daily_rule.py         one world under one policy, day by day, written to be read: the oracle of the kernel
kernel.py             the same for hundreds of worlds at once, as NumPy arrays
study.py              demands × policies × worlds as tables: Spark spreads worlds, the kernel runs them
paper.py              the paper's 1000 days, a study of one world
scenario.py           what a person asks of a sweep, as a TOML file; template.toml is one to begin with
sweep.py              all scenarios of such a file, wave by wave, summed up to one row a policy
choice.py             which policy to take
answer.py             what to buy by when, in words

A sweep goes this way: a TOML file becomes a scenario with its study; waves of worlds become rows of `schema.SCENARIOS` on disk;
these are summed up to `schema.POLICIES`; a policy is chosen, and its bands and days are simulated once more; the answer says
what to buy. What is drawn depends on the seed and the number of the world alone, so that any part can be repeated.
"""
