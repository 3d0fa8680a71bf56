"""The tables, as SQLAlchemy Core sees them. `migrations.py` makes them; a test compares the two.

EAs live in children of `events`, one per leaf (see `partitions.py`); the parent itself stays empty. Columns
stand in the order that wastes no byte on alignment. A text column is COLLATE "C": code-point order.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    SmallInteger,
    Table,
    Text,
    Uuid,
)

from utuple.cluster.layout import decode_layout, encode_layout
from utuple.cluster.line import Line, Member
from utuple.cluster.past import decode_history, encode_history
from utuple.model.section import Section
from utuple.model.value import Value, decode_data, encode_data

SCHEMA = "utuple"
metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("single", Boolean, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),  # up to version 2; from then on:
)

SET_COMMITTED = f"setval('{SCHEMA}.committed', {{}})"
COMMITTED = f"SELECT last_value FROM {SCHEMA}.committed"
"""The seq of the last commit. A sequence knows no transactions: it may be ahead of a commit that is under way, or that
failed. Seqs only have to grow."""

families = Table(
    "families",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),
    Column("type", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("lat", Double, nullable=False),
    Column("lon", Double, nullable=False),
    Column("id", Uuid, nullable=False),
    Column("family", Integer, nullable=False),
    Column("origin", SmallInteger, nullable=False),
    Column("address", Text, nullable=False),
    Column("data", Text, nullable=False),
)

devices = Table(
    "devices",
    metadata,
    Column("seq", BigInteger, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("lifetime_us", BigInteger, nullable=False),
    Column("lat", Double, nullable=False),
    Column("lon", Double, nullable=False),
    Column("id", Uuid, primary_key=True),
    Column("family", Integer, nullable=False),
    Column("address", Text, nullable=False),
    Column("reader", Text, nullable=False),
    Column("wanted", Text, nullable=False),
    Column("origin", SmallInteger, nullable=False),
)

origins = Table(
    "origins",
    metadata,
    Column("number", SmallInteger, primary_key=True),
    Column("name", Text, nullable=False),
    Column("move", Uuid),
)

templates = Table(
    "templates",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("family", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("lifetime_s", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reader", Text),
    Column("metadata", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("terms", Text, nullable=False),
)

positions = Table(
    "positions",
    metadata,
    Column("formal", Uuid, primary_key=True),
    Column("origin", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)

lines = Table(
    "lines",
    metadata,
    Column("start_key", Numeric, primary_key=True),
    Column("end_key", Numeric, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("members", Text, nullable=False),
)

servers = Table(
    "servers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("address", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("since_us", BigInteger, nullable=False),
)

notes = Table(
    "notes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)


def encode_members(line: Line) -> str:
    """What the column `members` of `lines` holds: the layout and those before it, too, where there are any."""
    form: dict[str, Value] = {
        "members": [[one.name, one.accumulatable, one.suspended] for one in line.members]
    }
    if line.layout.axes:
        form["layout"] = encode_layout(line.layout).decode()
    if line.past:
        form["past"] = encode_history(line.past).decode()
    return encode_data(form).decode()


def decode_line(start: int, end: int, epoch: int, encoded: str) -> Line:
    form = decode_data(encoded.encode())
    members = tuple(Member(*member) for member in form["members"])
    layout = decode_layout(form.get("layout", "").encode())
    past = decode_history(form.get("past", "").encode())
    return Line(Section(start, end), epoch, members, layout, past)
