"""Every limit of the model, by name, with its reason."""

from __future__ import annotations

MAX_DATA_BYTES = 1 << 20
"""A uTuple carries a reading or a command, not a file."""

MAX_NAME_BYTES = 1024
"""Addresses, subjects, types and reader names are index keys; a PostgreSQL b-tree entry must stay
below 2,704 bytes."""

MAX_PARTS = 25_000
"""Lists and mappings in one payload or template: to make more of them takes whoever reads it tens of milliseconds, in
one go."""

MAX_DEPTH = 32
"""Nesting of data: far beyond any reading, far below any parser's stack."""

MAX_ALTERNATIVES = 10_000
"""Values in one `one_of`, and in all those of one template: each becomes part of a statement and of the index."""

MAX_CONDITIONS = 256
"""Fields that one template asks something of: each is a part of a statement, which PostgreSQL looks at row by row, and a
condition to ask of every event that comes."""

MAX_TEMPLATE_BYTES = 512 << 10
"""Of both halves of an EF, and of the data template of a CF, as JSON: what a server's event loop checks in some
milliseconds, and keeps in memory for as long as it lives."""

MAX_PAGE_ROWS = 10_000
"""Stored matches a server is asked for by their time at once: a tenth of a second's work."""

MAX_LIFETIME_S = 100 * 366 * 86_400
"""A century; also keeps expiry inside 64-bit microseconds."""

MIN_TIME_US = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z, the first instant Python's datetime can express."""

MAX_TIME_US = 253_402_300_800_000_000
"""10000-01-01T00:00:00Z, the first instant it cannot (half-open)."""

MAX_RADIUS_M = 20_015_200.0
"""Half way round the Earth: beyond this a circle is the whole of it."""

MIN_INTEGER = -(1 << 63)
MAX_INTEGER = (1 << 64) - 1
"""The integers JSON readers agree on; larger ones would come back as floats."""
