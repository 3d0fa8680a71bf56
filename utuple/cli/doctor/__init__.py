"""`utuple doctor`: what is wrong here, and what to do about it.

judging     facts -> findings, each check a function                                 pure
gathering   the facts: versions, clocks, disk, ports, settings, the cluster
command     shows them
"""
