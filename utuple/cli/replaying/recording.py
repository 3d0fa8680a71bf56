"""A recording as events: any table with address, time, subject and type, and perhaps lat and lon. Columns that go by another
name are found by the names people use; what is left is the event's data."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from utuple.errors import InvalidInput

NAMES: Mapping[str, tuple[str, ...]] = {
    "address": (
        "address",
        "id",
        "device",
        "device_id",
        "vehicle",
        "vehicle_id",
        "sensor",
        "station",
        "name",
    ),
    "time": ("time", "timestamp", "datetime", "date", "ts", "t"),
    "lat": ("lat", "latitude", "y"),
    "lon": ("lon", "lng", "long", "longitude", "x"),
    "subject": ("subject",),
    "type": ("type",),
}
REQUIRED = ("address", "time")


@dataclass(frozen=True, slots=True)
class Mapped:
    """Which column is what; subject and type may be given instead."""

    columns: Mapping[str, str]
    data: tuple[str, ...]
    subject: str = ""
    type: str = ""


def mapped(heads: Sequence[str], subject: str = "", type_: str = "") -> Mapped:
    """What the columns of a table become. Raises what is missing."""
    by_name = {head.strip().lower(): head for head in heads}
    found = {
        part: next(by_name[name] for name in names if name in by_name)
        for part, names in NAMES.items()
        if any(name in by_name for name in names)
    }
    given = {"subject": subject, "type": type_}
    for part in (*REQUIRED, "subject", "type"):
        if part not in found and not given.get(part):
            hint = f", or give --{part}" if part in given else ""
            rule = f"has no column for it ({' or '.join(NAMES[part][:4])}){hint}; it has {', '.join(heads) or 'nothing'}"
            raise InvalidInput(part, None, rule)
    if ("lat" in found) != ("lon" in found):
        raise InvalidInput("position", None, "has one of lat and lon, but not the other")
    taken = {head for part, head in found.items() if not given.get(part)}
    return Mapped(found, tuple(head for head in heads if head not in taken), subject, type_)


def event_of(row: Mapping[str, str], how: Mapped) -> dict[str, Any]:
    """One row, as the arguments of `emit`."""
    column = how.columns
    event: dict[str, Any] = {
        "subject": how.subject or row[column["subject"]],
        "type": how.type or row[column["type"]],
        "address": row[column["address"]],
        "time": instant(row[column["time"]]),
        "data": {head: value_of(row[head]) for head in how.data if row.get(head) not in (None, "")},
    }
    if "lat" in column and row[column["lat"]] and row[column["lon"]]:
        try:
            event["position"] = (float(row[column["lat"]]), float(row[column["lon"]]))
        except ValueError:
            text = f"{row[column['lat']]}, {row[column['lon']]}"
            raise InvalidInput("position", text, "must be two numbers") from None
    return event


def value_of(text: str) -> Any:
    """A number, true or false where it is one; else the text."""
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return number if number == number and abs(number) != float("inf") else text
    return {"true": True, "false": False}.get(text.strip().lower(), text)


def instant(text: str) -> datetime:
    """ISO 8601, or Unix seconds or milliseconds. Without a zone it is UTC."""
    try:
        number = float(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text.strip())
        except ValueError:
            raise InvalidInput("time", text, "must be ISO 8601, or Unix seconds") from None
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    try:
        return datetime.fromtimestamp(number / 1000 if abs(number) > 1e11 else number, UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput("time", text, "must be within the years 1 to 9999") from None


def opened(path: Path) -> IO[str]:
    try:
        if path.name.endswith(".gz"):
            return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
        return path.open(newline="", encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput("FILE", str(path), f"cannot be read: {error.strerror}") from None


def heads_of(path: Path) -> list[str]:
    with opened(path) as file:
        try:
            return next(csv.reader(file), [])
        except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
            raise InvalidInput("FILE", str(path), f"is no table: {error}") from None


def events_of(path: Path, how: Mapped) -> Iterator[dict[str, Any] | InvalidInput]:
    """In the order of the file; a row that cannot be an event as its complaint. A file that breaks off ends with one, too."""
    with opened(path) as file:
        rows = csv.DictReader(file, restval="")
        while True:
            try:
                row = next(rows)
                yield event_of(row, how)
            except StopIteration:
                return
            except InvalidInput as error:
                yield error
            except csv.Error as error:
                yield InvalidInput(
                    f"line {rows.line_num + 1}", None, f"is no row of a table: {error}"
                )
            except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
                rule = f"is no table after line {rows.line_num}: {error}"
                yield InvalidInput("FILE", str(path), rule)
                return
