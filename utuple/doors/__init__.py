"""Doors: programs through which others than the SDK come in. Each is a client of the public SDK and nothing more, so that
whatever holds behind it (matching, moves, the laws, grants) holds for those who come through it.

starting    what every door is told, and where it may listen
visitors    of a secured cluster: who comes in, by what he shows
spaces      a space for each of them, on connections they share
tls         how a door listens there
"""
