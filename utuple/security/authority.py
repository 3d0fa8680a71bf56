"""The cluster's own certificate authority: makes keys and certificates, and signs the grants.

A key on the curve P-256 each: what TLS 1.3 handshakes quickly with, and what Python's `ssl` reads everywhere. A
certificate names one identity, as the URI of its subject alternative name, and the addresses of a program that listens.
Nothing here touches a file: `folder` keeps the authority, `credentials` what was issued.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from utuple.errors import InvalidInput
from utuple.security.credentials import Credentials, issued_us_of, serial_of
from utuple.security.identity import Identity, Role, check_cluster

AUTHORITY_DAYS = 3650
"""Ten years: it is renewed long before, with both valid meanwhile."""
DAYS_MAX = 3650
CLOCK_TOLERANCE = timedelta(hours=1)
"""A certificate begins to hold so long before it is issued: the clocks of small devices are slow now and then."""
_SERIAL_RANDOM_BITS = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Authority:
    cluster: str
    certificate_pem: bytes
    key_pem: bytes

    def issue(
        self,
        identity: Identity,
        days: float,
        hosts: Sequence[str] = (),
        now_us: int | None = None,
        *,
        after_us: int = 0,
    ) -> Credentials:
        """Credentials for this identity. `hosts` are names and addresses at which a program listens. `after_us`: they count as issued then
        at the earliest, whatever the clock says."""
        if identity.cluster != self.cluster:
            raise InvalidInput(
                "cluster", identity.cluster, f"this authority is that of {self.cluster}"
            )
        check_days(days)
        issued_us = identity.issued_us if now_us is None else now_us
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(identity.uri)]
        names += [_general_name(host) for host in hosts]
        begins = _instant(issued_us)
        usage = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if identity.role in (Role.PROGRAM, Role.DOOR):
            usage.append(ExtendedKeyUsageOID.SERVER_AUTH)
        own = x509.load_pem_x509_certificate(self.certificate_pem)
        ends = min(begins + timedelta(days=days), own.not_valid_after_utc)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_common_name(identity.name))
            .issuer_name(own.subject)
            .public_key(key.public_key())
            .serial_number(
                serial_of(max(issued_us, after_us), secrets.randbits(_SERIAL_RANDOM_BITS))
            )
            .not_valid_before(begins - CLOCK_TOLERANCE)
            .not_valid_after(ends)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Credentials(_pem(certificate), _key_pem(key), (self.certificate_pem.decode(),))

    def has_issued(self, certificate_pem: str) -> bool:
        own = x509.load_pem_x509_certificate(self.certificate_pem)
        return x509.load_pem_x509_certificate(certificate_pem.encode()).issuer == own.subject

    def vouch_for(self, fresh: Authority) -> str:
        """A certificate by which whoever trusts this authority, and has not heard of the one that replaces it, trusts that
        one too. It is shown beside the certificates the new one issues."""
        own = x509.load_pem_x509_certificate(self.certificate_pem)
        theirs = x509.load_pem_x509_certificate(fresh.certificate_pem)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(theirs.subject)
            .issuer_name(own.subject)
            .public_key(theirs.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(theirs.not_valid_before_utc)
            .not_valid_after(min(own.not_valid_after_utc, theirs.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_signing_only(), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return _pem(certificate)

    def sign(self, content: bytes) -> bytes:
        return self._key.sign(content, ec.ECDSA(hashes.SHA256()))

    @property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        key = serialization.load_pem_private_key(self.key_pem, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key


def new_authority(
    cluster: str, now_us: int, days: float = AUTHORITY_DAYS, *, after_us: int = 0
) -> Authority:
    check_cluster(cluster)
    check_days(days)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _common_name(f"{cluster} {secrets.token_hex(4)}")
    begins = _instant(now_us)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial_of(max(now_us, after_us), secrets.randbits(_SERIAL_RANDOM_BITS)))
        .not_valid_before(begins - CLOCK_TOLERANCE)
        .not_valid_after(begins + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        .add_extension(_signing_only(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(cluster, _pem(certificate).encode(), _key_pem(key).encode())


def is_signed(content: bytes, signature: bytes, authorities_pem: Sequence[str]) -> bool:
    """By one of these? There are two while an authority is being replaced."""
    return any(_has_signed(pem, content, signature) for pem in authorities_pem)


def _has_signed(authority_pem: str, content: bytes, signature: bytes) -> bool:
    key = x509.load_pem_x509_certificate(authority_pem.encode()).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return False
    try:
        key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def common_name(certificate_pem: str) -> str:
    """By which an authority is known to those whose certificates it issued."""
    subject = x509.load_pem_x509_certificate(certificate_pem.encode()).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def issued_us(certificate_pem: str) -> int:
    return issued_us_of(x509.load_pem_x509_certificate(certificate_pem.encode()).serial_number)


def holding(own_pem: Sequence[str], named_pem: Sequence[str]) -> tuple[str, ...]:
    """Which authorities hold for who came with some of them and judges by grants that name others: those that are named, and of its own
    what was made later, of which these grants cannot know yet. An older one that they do not name was retired: nothing that its
    key signs counts any longer, neither a certificate nor grants."""
    if not named_pem:
        return tuple(own_pem)
    newest_us = max(map(issued_us, named_pem))
    later = (pem for pem in own_pem if issued_us(pem) > newest_us)
    return tuple(dict.fromkeys((*named_pem, *later)))


def check_days(days: float) -> float:
    if not 0 < days <= DAYS_MAX:
        raise InvalidInput("days", days, f"must be above 0, at most {DAYS_MAX}")
    return days


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _common_name(name: str) -> x509.Name:
    """A common name is 64 characters at most; the identity is the URI."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _signing_only() -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _instant(now_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=now_us)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
