"""What is shown at a door: a token proves who signed it, until it ends; nobody can make one for another."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from utuple.errors import InvalidInput, NotAllowed
from utuple.security.authority import Authority, new_authority
from utuple.security.credentials import Credentials
from utuple.security.identity import Identity, Role
from utuple.security.proofs import (
    LIFE_MAX_S,
    Proved,
    proved_by_certificate,
    proved_by_token,
    token_of,
)

NOW_US = 1_800_000_000_000_000
HOUR_US = 3_600_000_000
HERE = new_authority("here", NOW_US)
WHO = Identity("here", Role.APPLICATION, "dispatch", NOW_US)
OTHER = Identity("here", Role.APPLICATION, "other", NOW_US)


def issued(identity: Identity = WHO, authority: Authority = HERE, days: float = 30) -> Credentials:
    return authority.issue(identity, days)


OWN = issued()
TOKEN = token_of(OWN, NOW_US, 3600)


def proved(token: str, now_us: int = NOW_US) -> Proved:
    return proved_by_token(token, "here", (HERE.certificate_pem.decode(),), now_us)


def shown(credentials: Credentials) -> str:
    certificate = x509.load_pem_x509_certificate(credentials.certificate_pem.encode())
    return base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    head, claims, signature = token.split(".")
    read = [orjson.loads(base64.urlsafe_b64decode(one + "==")) for one in (head, claims)]
    return read[0], read[1], signature


def put_together(head: object, claims: object, signature: str) -> str:
    texts = (
        base64.urlsafe_b64encode(orjson.dumps(one)).decode().rstrip("=") for one in (head, claims)
    )
    return ".".join((*texts, signature))


def test_a_token_proves_who_signed_it_until_it_ends() -> None:
    found = proved(TOKEN)
    assert (found.identity, found.by_token) == (WHO, True)
    assert found.until_us == NOW_US + HOUR_US
    assert proved(TOKEN, NOW_US + HOUR_US - 1) == found


def test_a_token_that_has_ended_is_named_as_such() -> None:
    with pytest.raises(NotAllowed, match=r"the token of dispatch \(application\) ended 2027-01-15"):
        proved(TOKEN, NOW_US + HOUR_US)


def test_a_token_ends_with_the_certificate_that_signed_it() -> None:
    token = token_of(issued(days=0.5), NOW_US, 86_400)
    assert proved(token).until_us == NOW_US + 12 * HOUR_US


def test_a_token_of_another_cluster_is_named_as_such() -> None:
    elsewhere = new_authority("here", NOW_US)
    with pytest.raises(NotAllowed, match="the token is of another cluster"):
        proved(token_of(issued(authority=elsewhere), NOW_US))


@pytest.mark.parametrize(
    ("changed", "value", "why"),
    [
        ("sub", OTHER.uri, "not signed"),
        ("exp", NOW_US // 1_000_000 + 9_000, "not signed"),
        ("aud", "there", "not signed"),
        ("iat", 5, "not signed"),
    ],
)
def test_a_token_that_was_changed_is_refused(changed: str, value: object, why: str) -> None:
    head, claims, signature = parts(TOKEN)
    with pytest.raises(NotAllowed, match=why):
        proved(put_together(head, claims | {changed: value}, signature))


def test_the_certificate_of_another_does_not_make_a_token_his() -> None:
    head, claims, signature = parts(TOKEN)
    other = issued(OTHER)
    head["x5c"] = [shown(other)]
    with pytest.raises(NotAllowed, match="not signed by the key of its certificate"):
        proved(put_together(head, claims | {"sub": OTHER.uri}, signature))


@pytest.mark.parametrize(
    ("changed", "value"),
    [("sub", OTHER.uri), ("sub", "spiffe://here/operator/x"), ("aud", "there")],
)
def test_who_signs_for_another_or_for_another_cluster_proves_nothing(
    changed: str, value: str
) -> None:
    """With his own key: the signature is right."""
    head, claims, _ = parts(TOKEN)
    content = put_together(head, claims | {changed: value}, "").rpartition(".")[0]
    key = serialization.load_pem_private_key(OWN.key_pem.encode(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = decode_dss_signature(key.sign(content.encode(), ec.ECDSA(hashes.SHA256())))
    signature = base64.urlsafe_b64encode(r.to_bytes(32) + s.to_bytes(32)).decode().rstrip("=")
    with pytest.raises(NotAllowed, match="its certificate of dispatch"):
        proved(f"{content}.{signature}")


def test_one_signature_is_written_in_one_way() -> None:
    content, _, signature = TOKEN.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    padded = base64.urlsafe_b64encode(raw[:32] + b"\0" + raw[32:]).decode().rstrip("=")
    with pytest.raises(NotAllowed, match="not signed"):
        proved(f"{content}.{padded}")


def test_a_token_that_is_too_long_is_not_looked_into() -> None:
    with pytest.raises(NotAllowed, match="longer than 8192 bytes"):
        proved(TOKEN + "A" * 8_192)


@pytest.mark.parametrize("usage", [[ExtendedKeyUsageOID.SERVER_AUTH], None], ids=["server", "none"])
def test_a_certificate_that_is_not_for_who_calls_proves_nobody(
    usage: list[x509.ObjectIdentifier] | None,
) -> None:
    """An authority that also issues certificates of another kind, such as a web server's, must not make its bearer somebody."""
    own = x509.load_pem_x509_certificate(OWN.certificate_pem.encode())
    builder = (
        x509.CertificateBuilder()
        .subject_name(own.subject)
        .issuer_name(own.issuer)
        .public_key(own.public_key())
        .serial_number(own.serial_number)
        .not_valid_before(own.not_valid_before_utc)
        .not_valid_after(own.not_valid_after_utc)
    )
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    builder = builder.add_extension(names, critical=False)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
    authority_key = serialization.load_pem_private_key(HERE.key_pem, password=None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    made = builder.sign(authority_key, hashes.SHA256())
    pem = made.public_bytes(Encoding.PEM).decode()
    bearer = Credentials(pem, OWN.key_pem, OWN.authorities_pem)
    own_pem = (HERE.certificate_pem.decode(),)
    with pytest.raises(NotAllowed, match="no authority of here has issued it"):
        proved_by_certificate(shown(bearer), "here", own_pem, NOW_US)
    with pytest.raises(NotAllowed, match="no authority of here has issued it"):
        proved(token_of(bearer, NOW_US))


@pytest.mark.parametrize("alg", ["none", "HS256", None, 7])
def test_no_other_way_of_signing_is_taken(alg: object) -> None:
    head, claims, _ = parts(TOKEN)
    with pytest.raises(NotAllowed, match="only ES256"):
        proved(put_together(head | {"alg": alg}, claims, ""))


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b.c", "é.é.é", TOKEN[:-3], TOKEN.split(".")[0], f"{TOKEN}.x", "x" * 9_000],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(NotAllowed):
        proved(token)


def test_a_token_that_lasts_too_long_is_neither_made_nor_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in (0.0, -1.0, LIFE_MAX_S + 1, float("nan")):
        with pytest.raises(InvalidInput, match="life"):
            token_of(OWN, NOW_US, wrong)
    long = issued(days=365)
    with monkeypatch.context() as patched:
        patched.setattr("utuple.security.proofs.LIFE_MAX_S", 10 * LIFE_MAX_S)
        token = token_of(long, NOW_US, LIFE_MAX_S + 86_400)
    with pytest.raises(NotAllowed, match="lasts longer than 90 days"):
        proved(token)


def test_a_token_of_tomorrow_is_refused() -> None:
    token = token_of(OWN, NOW_US + 24 * HOUR_US)
    with pytest.raises(NotAllowed, match="holds only later"):
        proved(token)


def test_credentials_that_have_ended_sign_no_token() -> None:
    with pytest.raises(NotAllowed, match="they sign no token"):
        token_of(issued(days=1), NOW_US + 48 * HOUR_US)


def test_a_certificate_says_whose_it_is_while_it_holds() -> None:
    own = (HERE.certificate_pem.decode(),)
    found = proved_by_certificate(shown(OWN), "here", own, NOW_US)
    assert (found.identity, found.by_token) == (WHO, False)
    for wrong, now_us, why in (
        ("???", NOW_US, "cannot be read"),
        (shown(issued(authority=new_authority("here", NOW_US))), NOW_US, "of another cluster"),
        (shown(OWN), NOW_US + 31 * 24 * HOUR_US, "ended"),
        (shown(OWN), NOW_US - 2 * HOUR_US, "holds only from"),
    ):
        with pytest.raises(NotAllowed, match=why):
            proved_by_certificate(wrong, "here", own, now_us)


def test_the_certificate_of_the_authority_itself_proves_nobody() -> None:
    own = HERE.certificate_pem.decode()
    der = x509.load_pem_x509_certificate(own.encode()).public_bytes(Encoding.DER)
    with pytest.raises(NotAllowed):
        proved_by_certificate(base64.b64encode(der).decode(), "here", (own,), NOW_US)
