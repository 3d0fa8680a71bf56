"""Capacity planning: how many servers to buy, when, at what risk. Spark's place, and nobody else's.

    cost/        what one uTuple costs a server: measured, fitted, or the paper's; what an application asks
    operation/   servers bought day by day under a policy: one scenario (the paper's), or thousands (a sweep)
    placement/   where load lies when keys are uneven: the load monitor's own planner beside a traditional DHT
    forecast/    when servers run out, from what the load monitor measured or from a recording
    dropping/    what to drop for a reader that comes and goes (paper 004): model, simulation, comparison
    report/      what all of these say to people: a value, and the pages that show it
    spark/       the Spark session, the Java it runs on, and Ctrl-C while it works
    reading.py   what a person wrote, read and checked
    schema.py    the columns of every table

Each idea has the same course. Plain Python or NumPy decides (without Spark, so that it can be read and tested); Spark
spreads it over scenarios or files and gives tables of `schema.py`; an `answer` turns tables into words and figures; a
module of `report/` makes a report of them. `utuple/cli/plan/` has a command for each. From the programs `ops_sim` takes
pure modules only: we simulate what we run.
"""
