"""`utuple plan`: capacity planning from the command line. What is planned lies in `ops_sim/`.

command.py    puts the commands together; each has a module of its own name
options.py    options that several commands have, and the folders they write to
printing.py   tables, cautions, progress and reports

Each command checks its options, has `ops_sim` do the work, writes a report if asked, and prints JSON or a table. What is heavy
(Spark, NumPy, rich) is imported inside the commands, so that `utuple --help` stays quick.
"""
