"""What somebody shows at a door, and the door to every program it calls for him: a token that he signed, or his certificate.

A token is a JSON Web Signature (RFC 7515, ES256) that carries the certificate whose key signed it (`x5c`). So whoever has credentials
can make one for himself, nobody can make one for another, and whoever trusts the authority can check it without asking anybody. It
ends soon, and with the certificate; what voids the certificate voids it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from utuple.errors import InvalidInput, NotAllowed
from utuple.security.credentials import Credentials, issued_us_of
from utuple.security.identity import Identity, identity_of
from utuple.security.own import shown_time

TOKEN, CERTIFICATE = "utuple-token", "utuple-certificate"
"""The names under which a door shows them with each call."""
LIFE_S = 8 * 3600.0
"""Of a token, unless it is said otherwise: a working day."""
LIFE_MAX_S = 90 * 86_400.0
"""For devices that know user names and passwords only. Who has certificates needs none that lasts."""
TOKEN_MAX_BYTES = 8 << 10
_CLOCKS_S = 3600
"""A token may be so much younger than this program's clock says now: the clocks of devices are wrong now and then."""
_HALF_BYTES = 32
"""Of a signature on P-256: two numbers."""
_MICROSECONDS = 1_000_000
_ASK = "get a new one with `utuple token`"


@dataclass(frozen=True, slots=True)
class Proved:
    identity: Identity
    until_us: int
    issuer: str
    """The common name of the authority."""
    by_token: bool


def check_life(life_s: float) -> float:
    if not 0 < life_s <= LIFE_MAX_S:
        rule = f"must be above 0, at most {LIFE_MAX_S / 86_400:g} days"
        raise InvalidInput("life", f"{life_s:g} s", rule)
    return life_s


def token_of(credentials: Credentials, now_us: int, life_s: float = LIFE_S) -> str:
    """For whoever these credentials are of. It ends with them at the latest."""
    check_life(life_s)
    certificate = x509.load_pem_x509_certificate(credentials.certificate_pem.encode())
    identity, ends_s = _identity(certificate), certificate.not_valid_after_utc.timestamp()
    now_s = now_us // _MICROSECONDS
    if ends_s <= now_s:
        ended = shown_time(int(ends_s) * _MICROSECONDS)
        raise NotAllowed(f"the credentials of {identity} ended {ended}: they sign no token")
    der = certificate.public_bytes(serialization.Encoding.DER)
    head = {"alg": "ES256", "typ": "JWT", "x5c": [base64.b64encode(der).decode()]}
    claims = {
        "sub": identity.uri,
        "aud": identity.cluster,
        "iat": now_s,
        "exp": int(min(now_s + life_s, ends_s)),
    }
    content = f"{_to_text(orjson.dumps(head))}.{_to_text(orjson.dumps(claims))}"
    key = serialization.load_pem_private_key(credentials.key_pem.encode(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = decode_dss_signature(key.sign(content.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{content}.{_to_text(r.to_bytes(_HALF_BYTES) + s.to_bytes(_HALF_BYTES))}"


def proved_by_token(
    token: str, cluster: str, authorities_pem: Sequence[str], now_us: int
) -> Proved:
    """Who has signed it. Raises NotAllowed, with why, if it proves nothing (any longer)."""
    if len(token) > TOKEN_MAX_BYTES:
        raise NotAllowed(f"the token is longer than {TOKEN_MAX_BYTES} bytes")
    try:
        head_text, claims_text, signature_text = token.split(".")
        head, claims = _parsed(head_text), _parsed(claims_text)
        signature = _from_text(signature_text)
        (shown,) = head["x5c"]
        certificate = x509.load_der_x509_certificate(base64.b64decode(shown, validate=True))
        issued_s, ends_s = int(claims["iat"]), int(claims["exp"])
        subject, audience = str(claims["sub"]), str(claims["aud"])
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise NotAllowed(f"the token cannot be read: {_ASK}") from None
    if head.get("alg") != "ES256":
        raise NotAllowed(f"the token is signed by {head.get('alg')!r}: only ES256 is taken")
    proved = _proved(certificate, "the token", cluster, authorities_pem, now_us)
    identity = proved.identity
    if not _has_signed(certificate, f"{head_text}.{claims_text}".encode(), signature):
        raise NotAllowed("the token is not signed by the key of its certificate, or was changed")
    if subject != identity.uri or audience != cluster:
        raise NotAllowed(f"the token is for {subject} at {audience}, its certificate of {identity}")
    until_us = min(ends_s * _MICROSECONDS, proved.until_us)
    if until_us <= now_us:
        raise NotAllowed(ended(identity, until_us))
    if issued_s > now_us / _MICROSECONDS + _CLOCKS_S:
        raise NotAllowed(f"the token of {identity} holds only later: compare the clocks")
    if ends_s - issued_s > LIFE_MAX_S:
        raise NotAllowed(f"the token of {identity} lasts longer than {LIFE_MAX_S / 86_400:g} days")
    return Proved(identity, until_us, proved.issuer, by_token=True)


def ended(identity: Identity, until_us: int) -> str:
    """Said to who comes with a token that has ended."""
    return f"the token of {identity} ended {shown_time(until_us)}: {_ASK}"


def proved_by_certificate(
    shown: str, cluster: str, authorities_pem: Sequence[str], now_us: int
) -> Proved:
    """Whose certificate it is, as base64 of its DER. That its holder has the key is a door's word."""
    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(shown, validate=True))
    except (ValueError, binascii.Error):
        raise NotAllowed("the certificate cannot be read") from None
    return _proved(certificate, "the certificate", cluster, authorities_pem, now_us)


def _proved(
    certificate: x509.Certificate,
    what: str,
    cluster: str,
    authorities_pem: Sequence[str],
    now_us: int,
) -> Proved:
    if not any(_has_issued(pem, certificate) for pem in authorities_pem):
        raise NotAllowed(f"{what} is of another cluster: no authority of {cluster} has issued it")
    identity = _identity(certificate)
    begins_us = round(certificate.not_valid_before_utc.timestamp()) * _MICROSECONDS
    until_us = round(certificate.not_valid_after_utc.timestamp()) * _MICROSECONDS
    if now_us < begins_us:
        raise NotAllowed(f"{what} of {identity} holds only from {shown_time(begins_us)} on")
    if until_us <= now_us:
        raise NotAllowed(f"the credentials of {identity} ended {shown_time(until_us)}")
    names = certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Proved(identity, until_us, str(names[0].value) if names else "", by_token=False)


def _has_issued(authority_pem: str, certificate: x509.Certificate) -> bool:
    """And for whoever calls: an authority's own certificate proves nobody."""
    authority = x509.load_pem_x509_certificate(authority_pem.encode())
    try:
        certificate.verify_directly_issued_by(authority)
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return ExtendedKeyUsageOID.CLIENT_AUTH in usage


def _identity(certificate: x509.Certificate) -> Identity:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        (uri,) = found.value.get_values_for_type(x509.UniformResourceIdentifier)
        return identity_of(uri, issued_us_of(certificate.serial_number))
    except (x509.ExtensionNotFound, ValueError):
        raise NotAllowed("the certificate must name exactly one identity") from None


def _has_signed(certificate: x509.Certificate, content: bytes, signature: bytes) -> bool:
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or len(signature) != 2 * _HALF_BYTES:
        return False
    r, s = int.from_bytes(signature[:_HALF_BYTES]), int.from_bytes(signature[_HALF_BYTES:])
    try:
        key.verify(encode_dss_signature(r, s), content, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _parsed(text: str) -> dict[str, Any]:
    found = orjson.loads(_from_text(text))
    if not isinstance(found, dict):
        raise TypeError(text)
    return found


def _to_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_text(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
