"""Doors: programs through which others than the SDK come in. Each is a client of the public SDK and nothing more, so that
whatever holds behind it (matching, moves, the laws) holds for those who come through it."""
