"""Certificates and credentials, over real handshakes of Python's ssl."""

from __future__ import annotations

import ssl
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from utuple.errors import InvalidInput
from utuple.security.authority import Authority, is_signed, issued_us, new_authority
from utuple.security.credentials import (
    Credentials,
    credentials_of,
    peer_identity,
    read_credentials,
    write_credentials,
)
from utuple.security.identity import Identity, Role

NOW_US = int(time.time() * 1e6)
DAY_US = 86_400_000_000
DEVICE = Identity("here", Role.DEVICE, "truck-17")
SERVER = Identity("here", Role.PROGRAM, "server-1")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return new_authority("here", NOW_US)


def handshake(client: Credentials, server: Credentials) -> tuple[Identity, Identity]:
    """Both ends in memory; who the client reached, and who the server heard."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.client_context().wrap_bio(to_client, to_server, server_side=False)
    listening = server.server_context().wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for end in (calling, listening):
            if end in done:
                continue
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            done.add(end)
    assert calling.version() == "TLSv1.3"
    listening.write(b"x")  # the client hears of a refusal with the first thing it reads
    assert calling.read(1) == b"x"
    return peer_identity(calling.getpeercert()), peer_identity(listening.getpeercert())


def test_both_ends_know_each_other_and_when_they_were_issued(authority: Authority) -> None:
    device = authority.issue(DEVICE, 365, now_us=NOW_US + 3)
    server = authority.issue(SERVER, 30, ["127.0.0.1", "space.example"], NOW_US)
    reached, heard = handshake(device, server)
    assert reached == replace(SERVER, issued_us=NOW_US)
    assert heard == replace(DEVICE, issued_us=NOW_US + 3)
    assert issued_us(device.certificate_pem) == NOW_US + 3


def test_a_certificate_of_another_cluster_is_refused(authority: Authority) -> None:
    other = new_authority("there", NOW_US)
    stranger = other.issue(replace(DEVICE, cluster="there"), 1, now_us=NOW_US)
    trusting = stranger.trusting(authority.certificate_pem.decode())
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        handshake(trusting, authority.issue(SERVER, 1, now_us=NOW_US))


def test_an_expired_certificate_is_named_as_such(authority: Authority) -> None:
    expired = authority.issue(DEVICE, 1, now_us=NOW_US - 3 * DAY_US)
    with pytest.raises(ssl.SSLError, match="certificate has expired"):
        handshake(expired, authority.issue(SERVER, 1, now_us=NOW_US))


def test_a_certificate_that_does_not_hold_yet_is_named_as_such(authority: Authority) -> None:
    early = authority.issue(DEVICE, 30, now_us=NOW_US + 2 * DAY_US)
    with pytest.raises(ssl.SSLError, match="not yet valid"):
        handshake(early, authority.issue(SERVER, 1, now_us=NOW_US))


def test_a_device_cannot_pose_as_a_server(authority: Authority) -> None:
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        handshake(
            authority.issue(DEVICE, 1, now_us=NOW_US),
            authority.issue(replace(DEVICE, name="truck-18"), 1, now_us=NOW_US),
        )


def test_two_authorities_are_trusted_while_one_replaces_the_other(authority: Authority) -> None:
    second = new_authority("here", NOW_US)
    old, new = authority.certificate_pem.decode(), second.certificate_pem.decode()
    server = second.issue(SERVER, 1, now_us=NOW_US).trusting(old)
    device = authority.issue(DEVICE, 1, now_us=NOW_US).trusting(new)
    assert handshake(device, server)[1].name == "truck-17"


def test_what_the_authority_signed_is_known_and_nothing_else(authority: Authority) -> None:
    trusted = (
        new_authority("here", NOW_US).certificate_pem.decode(),
        authority.certificate_pem.decode(),
    )
    signature = authority.sign(b"grants 7")
    assert is_signed(b"grants 7", signature, trusted)
    assert not is_signed(b"grants 8", signature, trusted)
    assert not is_signed(b"grants 7", signature, trusted[:1])
    assert not is_signed(b"grants 7", b"", trusted)


def test_the_file_is_for_its_owner_alone_and_is_read_back(
    authority: Authority, tmp_path: Path
) -> None:
    path = tmp_path / "truck-17.creds"
    for _ in range(2):
        credentials = authority.issue(DEVICE, 1, now_us=NOW_US)
        write_credentials(path, credentials)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert read_credentials(path) == credentials
    assert [found.name for found in tmp_path.iterdir()] == ["truck-17.creds"]


def test_a_key_is_in_no_representation_and_in_no_error(
    authority: Authority, tmp_path: Path
) -> None:
    credentials = authority.issue(DEVICE, 1, now_us=NOW_US)
    other = authority.issue(DEVICE, 1, now_us=NOW_US)
    mixed = Credentials(credentials.certificate_pem, other.key_pem, credentials.authorities_pem)
    path = tmp_path / "mixed.creds"
    path.write_text(mixed.to_pem())
    with pytest.raises(InvalidInput, match="must fit together") as refused:
        read_credentials(path)
    assert "PRIVATE" not in repr(credentials) + str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00" * 50, b"-----BEGIN CERTIFICATE-----\n", b"x" * 300_000]
)
def test_what_is_no_file_of_credentials_is_refused_by_its_name(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.creds"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"credentials: .*a\.creds"):
        read_credentials(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_credentials(tmp_path / "none.creds")


@pytest.mark.parametrize("days", [0, -1, 5000, float("nan")])
def test_days_have_limits(authority: Authority, days: float) -> None:
    with pytest.raises(InvalidInput, match="days"):
        authority.issue(DEVICE, days, now_us=NOW_US)


@pytest.mark.parametrize(
    "certificate",
    [
        None,
        {},
        {"subjectAltName": (("URI", "spiffe://here/device/a"), ("URI", "spiffe://here/device/b"))},
    ],
)
def test_a_certificate_with_no_name_or_two_is_refused(
    certificate: dict[str, object] | None,
) -> None:
    with pytest.raises(InvalidInput, match="certificate"):
        peer_identity(certificate)


def test_a_file_with_other_letters_than_ascii_is_refused_by_name(authority: Authority) -> None:
    """Found by fuzzing: `ssl` raised a TypeError."""
    pem = authority.issue(DEVICE, 30, now_us=NOW_US).to_pem()
    spoilt = pem[:-60] + "\ufffd" + pem[-60:]
    with pytest.raises(InvalidInput, match="ASCII"):
        credentials_of(spoilt, "truck-17.creds")
