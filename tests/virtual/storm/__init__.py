"""The first part of a seed: everything happens at once, and much of it fails.

faults         crashes, stops, lost databases, cut links, bad weather, clocks that are set
moves          moves of every kind, ordered continually, and how they must end
aims           faults aimed at the few milliseconds of one move
around_moves   what clients do in those milliseconds
readers        readers of one name in several programs and openings; openings that are cancelled
"""
