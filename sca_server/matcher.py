"""Simple commands meet CFs: the same subject, type and address, and data the CF's template accepts.

A dictionary look-up a row; nothing is built for a row but its place in the answer. Tested against
`utuple.model.match.matches`, which is the truth. Pure.
"""

from __future__ import annotations

from sca_server.commands import Commands
from sca_server.index import DataTemplate, Device, Index
from utuple.model.condition import where_meets
from utuple.model.value import Value, decode_data


def match(index: Index, commands: Commands, now_us: int) -> tuple[list[int], list[Device]]:
    """Every matching pair, as two columns: the command's row and the device. In order of rows."""
    rows: list[int] = []
    devices: list[Device] = []
    places = [index.at(family).get for family in commands.families]
    row = -1
    verdicts = _Verdicts()
    last: DataTemplate | None = None
    said: dict[bytes, bool] = {}
    """What the last template says: mostly the next device has the same."""
    for number, address, payload in zip(
        commands.family, commands.addresses, commands.payloads, strict=True
    ):
        row += 1
        device = places[number](address)
        while device is not None:
            if device.expires_us > now_us:
                template = device.template
                if template is not last:
                    last, said = template, verdicts.of(template)
                verdict = said.get(payload)
                if verdict is None:
                    verdict = said[payload] = verdicts.ask(template, payload)
                if verdict:
                    rows.append(row)
                    devices.append(device)
            device = device.next
    return rows, devices


class _Verdicts:
    """What each template said to each payload, for one batch: fleets are told the same thing."""

    __slots__ = ("_data", "_of_template")

    def __init__(self) -> None:
        self._of_template: dict[DataTemplate, dict[bytes, bool]] = {}
        self._data: dict[bytes, dict[str, Value]] = {}

    def of(self, template: DataTemplate) -> dict[bytes, bool]:
        return self._of_template.setdefault(template, {})

    def ask(self, template: DataTemplate, payload: bytes) -> bool:
        if template.where is None:
            return True
        data = self._data.get(payload)
        if data is None:
            data = self._data[payload] = decode_data(payload)
        return where_meets(template.where, data)
