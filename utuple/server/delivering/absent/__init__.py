"""Readers that come and go, and what is dropped meanwhile (law 9).

absences    when a reader with a drop policy was away, and what is dropped of what came meanwhile       pure
presence    how long a reader is here and away, and the share ζ that may join its queue                 pure
away        carries out what absences ask for: notes, surveys, declarations
"""
