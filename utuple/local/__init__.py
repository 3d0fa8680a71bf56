"""A whole cluster as processes of this machine: started, kept alive, stopped. The command line, the demo, chaos, the
benchmarks and tests all use this one.

temporary     `async with cluster(servers=3) as running:` in a temporary folder, gone afterwards
running       the cluster that runs: its addresses, logs, and accidents on purpose
keeper        one program kept alive; database: one PostgreSQL
layout        which programs there are, where each listens and how it is started (pure)
readiness     what is still waited for
folder        what is written down: what the cluster is, what runs, what was said
ports, processes   what the machine gives
supervising/  the cluster of `utuple up`: it lasts, and is found again by its folder or its address
"""
