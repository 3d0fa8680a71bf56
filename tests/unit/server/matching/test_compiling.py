"""Kernels are compiled beside the server's work."""

from __future__ import annotations

import pytest

from utuple.server.matching.compiling import compile_beside


def test_a_process_of_its_own_compiles_for_the_server() -> None:
    pytest.importorskip("numba")
    assert compile_beside()
