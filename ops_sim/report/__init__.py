"""What a plan says to people. A report is a value; builders make it from tables, `render/` shows it.

value.py       the report: answer, key figures, plots as data, tables, assumptions
formatting.py  numbers and days as people read them
paper.py, sweep.py, estimate.py, calibration.py, forecast.py, placement.py, dropping.py   a builder for each command
operation.py   what the builders of an operation share: figure 9, and the thresholds of the rule
compare.py     two reports side by side, which is a report again
folder.py      the folder of a report: written at once, and read back for a comparison

A builder takes the answer and the tables of a plan and knows nothing of pages; a page takes a report and knows nothing of plans.
"""
