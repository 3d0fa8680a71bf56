"""Lines, servers and load on the wire; the end of the hash space does not fit 64 bits and still goes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests import strategies as some
from utuple.cluster.line import Line, Member, ServerInfo
from utuple.cluster.load import Load
from utuple.model.key import HASH_SPACE
from utuple.model.section import Section
from utuple.wire import utuple_pb2 as pb
from utuple.wire.cluster import (
    line_from_wire,
    line_to_wire,
    load_from_wire,
    load_to_wire,
    server_from_wire,
    server_to_wire,
)


@given(some.lines())
@example(Line(Section(0, HASH_SPACE), 1, (Member("server-1"),)))
def test_a_line_goes_through_unchanged(line: Line) -> None:
    assert line_from_wire(pb.Line.FromString(line_to_wire(line).SerializeToString())) == line


@given(
    st.builds(ServerInfo, some.names, some.names, st.sampled_from(["server", "sca", "manager"])),
    some.times_us,
)
def test_where_a_program_listens_goes_through_unchanged(info: ServerInfo, since_us: int) -> None:
    info = ServerInfo(info.name, info.address, info.role, since_us)
    raw = server_to_wire(info).SerializeToString()
    assert server_from_wire(pb.ServerInfo.FromString(raw)) == info


amounts = st.floats(0, 1e9)


@given(st.builds(Load, amounts, amounts, amounts, amounts, st.integers(0, (1 << 32) - 1)))
def test_load_goes_through_unchanged(load: Load) -> None:
    assert load_from_wire(pb.Load.FromString(load_to_wire(load).SerializeToString())) == load
