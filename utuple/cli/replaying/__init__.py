"""`utuple replay` and `utuple map`: a recording played into the space, as fast as it was or faster.

recording   a table of address, time, position, subject, type -> events               pure, but for opening the file
command     the two commands; when each event is due
"""
