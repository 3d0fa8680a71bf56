"""Two clusters that start at once on one machine never get the same ports."""

from __future__ import annotations

import multiprocessing
import socket
from contextlib import ExitStack

import pytest

from utuple.local.layout import HOST, Layout
from utuple.local.ports import BLOCK, claimed, is_free


def test_a_block_has_room_for_a_cluster_and_its_guard() -> None:
    largest = Layout(servers=10, managers=11, port=10_000)
    assert max(program.port for program in largest.programs) < 10_000 + BLOCK - 1


@pytest.mark.parametrize("blocks", [1, 2])
def test_claimed_ports_are_free_and_nobody_else_claims_them(blocks: int) -> None:
    """In one process the same ports are tried first: without the guards every claim would be the same."""
    with ExitStack() as claims:
        firsts = [claims.enter_context(claimed(blocks)) for _ in range(5)]
        taken = [port for first in firsts for port in range(first, first + blocks * BLOCK)]
        assert len(set(taken)) == 5 * blocks * BLOCK
        assert all(is_free(first) for first in firsts)


def test_a_block_with_a_port_in_use_is_passed_over() -> None:
    with claimed() as first:
        pass
    with socket.socket() as other:
        other.bind((HOST, first + 3))
        with claimed() as next_:
            assert next_ != first


def _claim_and_die(said: multiprocessing.Queue[int]) -> None:
    with claimed() as first:
        said.put(first)
        said.close()
        said.join_thread()
        multiprocessing.current_process().kill()


def test_a_claim_ends_with_its_process() -> None:
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    process = context.Process(target=_claim_and_die, args=(said,))
    process.start()
    first = said.get(timeout=60)
    process.join(60)
    assert is_free(first + BLOCK - 1)
