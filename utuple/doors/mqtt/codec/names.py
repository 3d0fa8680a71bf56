"""Topic names and topic filters (MQTT 5, section 4.7). Pure.

A name is levels between slashes, any of which may be empty. In a filter `+` is exactly one level, whatever it is, and `#`
the rest, also no level at all (`a/#` matches `a`). Filters that begin with a wildcard match no name that begins with `$`.
"""

from __future__ import annotations

from utuple.doors.mqtt.codec.reasons import ProtocolError, Reason

MAX_NAME_BYTES = 1024
"""Names become addresses of uTuples, which have this limit."""
SHARED = "$share"


def check_topic(topic: str) -> None:
    """Of a PUBLISH or a will."""
    if not topic:
        raise ProtocolError(Reason.PROTOCOL_ERROR, "the topic name is empty")
    if "+" in topic or "#" in topic:
        raise ProtocolError(Reason.TOPIC_NAME_INVALID, "a topic name holds a wildcard")


def is_filter(pattern: str) -> bool:
    if not pattern:
        return False
    *before, last = pattern.split("/")
    alone = all(level == "+" or "+" not in level for level in (*before, last))
    return alone and all("#" not in level for level in before) and (last == "#" or "#" not in last)


def is_shared(pattern: str) -> bool:
    return pattern.startswith(f"{SHARED}/") or pattern == SHARED


def shared(pattern: str) -> tuple[str, str] | None:
    """The group of a shared subscription, and what it asks for (MQTT 5, section 4.8.2). None: it is none, or a wrong one."""
    before, _, rest = pattern.partition("/")
    group, slash, asked = rest.partition("/")
    is_right = before == SHARED and group and slash and not has_wildcard(group) and is_filter(asked)
    return (group, asked) if is_right else None


def has_wildcard(pattern: str) -> bool:
    return "+" in pattern or "#" in pattern


def fixed_prefix(pattern: str) -> str:
    """What every name that the filter matches begins with. `a/#` also matches `a`, so its prefix has no slash."""
    at = min((place for place in map(pattern.find, "+#") if place >= 0), default=len(pattern))
    if pattern[at:] == "#" and at:
        return pattern[: at - 1]
    return pattern[:at]


def matches(pattern: str, topic: str) -> bool:
    if pattern == topic:
        return True
    if topic.startswith("$") and pattern[:1] in ("+", "#"):
        return False
    return levels_match(pattern.split("/"), topic.split("/"))


def levels_match(pattern: list[str], levels: list[str]) -> bool:
    for number, wanted in enumerate(pattern):
        if wanted == "#":
            return True
        if number >= len(levels) or wanted not in ("+", levels[number]):
            return False
    return len(pattern) == len(levels)
