"""What a plan says to people. A report is a value; builders make it from tables, `render/` shows it.

value.py       the report: answer, key figures, plots as data, tables, assumptions
formatting.py  numbers and days as people read them
paper.py, sweep.py, estimate.py, calibration.py, forecast.py, placement.py   a builder for each command
operation.py   plots and words that paper and sweep share
compare.py     two reports side by side, which is a report again
folder.py      the folder of a report: written at once, and read back for a comparison
"""
