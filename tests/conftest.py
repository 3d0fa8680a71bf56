"""Hypothesis profiles. `HYPOTHESIS_PROFILE=ci` (the default) tries the same examples on every run, so a
red build is red again on any machine; `search` looks for new ones, for as long as one lets it."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings

# A suite that a shell has started in the background ignores SIGINT, and so would every program it starts: those that are sent
# Ctrl-C would never end. Programs that start with the usual handler have it, whoever started the suite.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as `utuple` does: see utuple/cli/main.py

settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=100,
    deadline=None,  # a loaded machine is not a bug
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "search",
    max_examples=5_000,
    deadline=timedelta(seconds=5),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: the two workers take file by file, and short ones at the end leave neither of them idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
