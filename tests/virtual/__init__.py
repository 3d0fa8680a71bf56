"""The virtual cluster: every program of ours in one thread, on virtual time, from a seed.

    world/       what everything stands on: the loop and its clocks, disks, the network, the transport      no program of ours
    programs/    servers, managers, sCA servers, monitors, clients and who is trusted, in virtual shells
    storm/       the first part of a seed: faults, moves, readers that come and go, and what is aimed at a move
    scenes/      the second part, in the calm: one module for one kind of trouble each, played on some seeds
    mutants/     each rule turned off in turn: a seed must notice
    plan         what a seed plans, drawn before anything runs
    run          one seed: plan, storm, healing, probes, verdict
    coverage     what many seeds together must have met
    summary      what many seeds came to

The verdict is that of `benchmarks/chaos/checker.py`, which judges real clusters, too. `make virtual SEEDS=2000` and `make mutants`
are the thorough runs; `make test` plays a few seeds of many.
"""
