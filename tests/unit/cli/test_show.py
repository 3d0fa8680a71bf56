"""What people read at a terminal of 80 columns."""

from __future__ import annotations

import io

from rich.console import Console

from utuple.admin.programs import Server
from utuple.admin.readers import Reader
from utuple.cli.looking.show import table_of_readers, table_of_terms
from utuple.runtime.clock import now_us

WEEK_US = 7 * 86_400 * 1_000_000


def reader(name: str, lag: int, *, connected: bool = False, more: bool = False) -> Reader:
    seen_us = None if connected else now_us()
    expires_us = None if connected else now_us() + WEEK_US
    return Reader(name, 1, connected, lag, more, ("truck/load",), seen_us, expires_us)


def printed(servers: list[Server]) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=80).print(table_of_readers(servers))
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def test_a_reader_has_one_line_a_server_and_one_for_all() -> None:
    servers = [
        Server("server-1", readers=(reader("dispatch", 1200), reader("", 1, connected=True))),
        Server("server-2", readers=(reader("dispatch", 34, more=True),)),
    ]
    _, head, _, *rows = printed(servers)
    assert head.split() == ["reader", "at", "server", "reads", "connected", "behind", "forgotten"]
    assert [row.split()[:2] for row in rows[1:]] == [
        ["dispatch", "server-1"],
        ["dispatch", "server-2"],
        ["dispatch", "all"],
    ]
    assert "away" in rows[1] and rows[3].split()[2:] == ["1,234+"]


def test_what_policies_have_measured_has_a_table_of_its_own() -> None:
    plain = Reader("dispatch", 1, True, 0)
    assert table_of_terms([Server("server-1", readers=(plain,))]) is None
    away = Reader("visitor", 1, False, 3, terms="{}", on_s=20.0, off_s=5.0, zeta=0.25, dropped=17)
    table = table_of_terms([Server("server-1", readers=(plain, away))])
    assert table is not None and table.row_count == 1
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells == ["visitor", "server-1", "20/5", "", "0.250", "17", "0", ""]
