"""The rules of the assignment managers, each with a switch that turns it off: digests see everything, and who may have lost
something is told everything."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from assignment_manager import digest
from assignment_manager.digest import Digest
from assignment_manager.directory import Directory, Found
from assignment_manager.manager import Manager
from assignment_manager.peer import Peer
from assignment_manager.service import Service
from tests.replacing import replaced
from tests.virtual.mutants.serving import Mutant
from utuple.cluster.line import ServerInfo


def a_digest_does_not_see_epochs() -> AbstractContextManager[None]:
    mark = digest._mark

    def of_the_section(peer: Peer) -> int:
        return mark(Peer(peer.section, 1))

    return replaced(digest, "_mark", of_the_section)


def servers_are_not_compared() -> AbstractContextManager[None]:
    def of_lines(self: Digest, heard: Digest) -> bool:
        return (self.peers, self.kept) != (heard.peers, heard.kept)

    return replaced(Digest, "differs", of_lines)


def what_others_hold_is_not_compared() -> AbstractContextManager[None]:
    def of_peers(self: Digest, heard: Digest) -> bool:
        return (self.servers, self.peers) != (heard.servers, heard.peers)

    return replaced(Digest, "differs", of_peers)


def tokens_outlive_the_ring() -> AbstractContextManager[None]:
    """Lines that were announced once are not asked for again, though all who held them may have gone."""

    def remember(self: Manager) -> None:
        return

    return replaced(Manager, "forget_announced", remember)


def a_token_stands_for_lines_that_have_not_come() -> AbstractContextManager[None]:
    wants_lines = Manager.wants_lines

    def once(self: Manager, server: ServerInfo, token: int) -> bool:
        wanted = wants_lines(self, server, token)
        self.has_announced(server, token)
        return wanted

    return replaced(Manager, "wants_lines", once)


def guests_stay() -> AbstractContextManager[None]:
    def keep(self: Directory) -> None:
        return

    return replaced(Directory, "_shed", keep)


def a_question_is_not_passed_on() -> AbstractContextManager[None]:
    async def nobody(self: Service, keys: Sequence[int], found: Found) -> None:
        return

    return replaced(Service, "_ask_elsewhere", nobody)


DIRECTORIES: dict[str, Mutant] = {
    "a digest does not see epochs": a_digest_does_not_see_epochs,
    "servers are not compared": servers_are_not_compared,
    "what others hold is not compared": what_others_hold_is_not_compared,
    "tokens outlive the ring": tokens_outlive_the_ring,
    "a token stands for lines that have not come": a_token_stands_for_lines_that_have_not_come,
    "guests stay": guests_stay,
    "a question is not passed on": a_question_is_not_passed_on,
}

OF_MANY_MANAGERS = DIRECTORIES.keys() - {"a token stands for lines that have not come"}
"""These show only where a line is not held by all managers, nor told to all. The one left out shows best with a single manager:
with several, each that comes up has everything announced anew."""
