"""Each rule that carries a law, with a switch that turns it off: the virtual cluster must notice.

    serving        one server and the members of a line
    moving         moving load (docs/moving.md)
    layouts        partitioned lines
    readers        readers: names, lifetimes, cancelled openings
    absences       drops that are declared (law 9), deliveries that are shared
    trust          law 8
    elastic        elasticity (docs/elasticity.md)
    sca            how sCA servers share devices out
    directories    assignment managers
    table          all of them, by name
    hunting        one of them and its seeds: those of seeds.json, which noticed it before, or a search

`make mutants` runs this package; `tests/replacing.py` sees to it that a switch fails loudly when what it names is gone.
"""
