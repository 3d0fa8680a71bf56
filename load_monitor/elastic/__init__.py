"""Elasticity: how many servers there shall be, and which machines they run on. Pure.

Two levels, after the paper on just-enough elasticity (section 5). The inner one decides on servers, by their load; the outer
one on machines, by what servers that have no place ask for.

    policy      every threshold, wait and limit; settings: the same from a TOML file; forecast: servers ahead of the load
    seen        what a decision is made from: servers with their loads, machines, and whether load still moves
    seeing      that, from the planner's snapshot and what a provisioner has made
    inner       how many servers are required
    outer       which machine has room for a server, and how large a new machine is
    actions     what is to be done, each with its reason in words
    controller  `step(seen) -> Decision`: both levels, one step after the other

The live monitor, the virtual cluster and `ops_sim` run this one controller. It remembers only waits: one that is killed and begun
anew decides the same a little later.
"""
