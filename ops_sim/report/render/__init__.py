"""Pages of a report: one for a browser, one for mail.

palette.py                         the colours of both
plotly.py, html.py, report.css/js  one HTML file that needs nothing else; plotly draws the plots in it
image.py, text.py                  PNG and PDF by matplotlib; text that is measured so that it fits
"""
