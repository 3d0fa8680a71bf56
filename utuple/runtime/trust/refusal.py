"""Why a connection was not made, in words for whoever holds the credentials."""

from __future__ import annotations

from utuple.errors import InvalidInput, NotAllowed, Unavailable, UTupleError
from utuple.runtime.clock import now_us
from utuple.security.own import OwnCredentials, shown_time
from utuple.transport.channel import Channel

_ASK = "ask an operator for new ones (utuple grant)"
_HAS_ENDED = ("CERTIFICATE_EXPIRED", "certificate has expired")
_NOT_YET = ("certificate is not yet valid",)
_UNKNOWN = (
    "UNKNOWN_CA",
    "self-signed certificate",
    "self signed",
    "unable to get",
    "DECRYPT_ERROR",
)
_UNSECURED = ("WRONG_VERSION_NUMBER", "record layer failure", "PACKET_LENGTH_TOO_LONG")
_NOT_YET_THERE = ("ALERT_BAD_CERTIFICATE",)
"""What OpenSSL says to a certificate that holds only later, by the clock of who says it."""
_REFUSED = ("ALERT", "CERTIFICATE_VERIFY_FAILED")


def cause_of(error: UTupleError) -> str:
    """As the audit counts it: what is said of each value differs, the rule does not."""
    if not isinstance(error, InvalidInput):
        return type(error).__name__
    return f"{error.field} {error.rule.partition(':')[0]}"


def check_not_ended(own: OwnCredentials) -> None:
    """Whoever holds credentials that have ended is told so, and not that nobody answers."""
    held = own.held
    if held.until_us <= now_us():
        raise NotAllowed(f"the credentials of {held.identity} ended {held.until}; {_ASK}")


def why_not_connected(channel: Channel, address: str, own: OwnCredentials | None) -> UTupleError:
    """What to say of an address that does not take the connection. Definite only where trying again cannot help."""
    failure = channel.failure
    if own is None:
        return Unavailable(_not_secured(address, failure))
    if own.held.until_us <= now_us():
        return NotAllowed(f"the credentials of {own.identity} ended {own.held.until}; {_ASK}")
    if own.held.begins_us > now_us():
        begins = shown_time(own.held.begins_us)
        return NotAllowed(
            f"the credentials of {own.identity} hold only from {begins} on; compare the clocks"
        )
    if _says(failure, _UNSECURED):
        return Unavailable(
            f"{address} does not speak TLS: this cluster is not secured, or it is another program"
        )
    if _says(failure, _HAS_ENDED):
        return Unavailable(
            f"{address}: its certificate, or yours by its clock, has ended ({failure})"
        )
    if _says(failure, _NOT_YET):
        return Unavailable(
            f"{address}: its certificate, or yours by its clock, holds only later ({failure})"
        )
    if _says(failure, _UNKNOWN):
        return NotAllowed(
            f"{address} and {own.identity} are of different clusters, or one's authority was replaced ({failure}); {_ASK}"
        )
    if " answers " in failure:
        return Unavailable(f"{address}: {failure}")
    if _says(failure, _NOT_YET_THERE):
        return NotAllowed(
            f"{address} refuses the credentials of {own.identity}: by its clock they do not hold yet, or they are "
            f"damaged ({failure}); compare the clocks"
        )
    if _says(failure, _REFUSED):
        return NotAllowed(
            f"{address} refuses the credentials of {own.identity} ({failure}); {_ASK}"
        )
    if "closed" in failure or "reset" in failure:
        return Unavailable(f"{address} closes the connection: perhaps it refuses {own.identity}")
    return Unavailable(f"nothing listens at {address}")


def _not_secured(address: str, failure: str) -> str:
    if "closed" in failure or "reset" in failure:
        return (
            f"{address} closes the connection: if the cluster is secured, say who you are "
            "(credentials=…, --credentials or UTUPLE_CREDENTIALS)"
        )
    return f"nothing listens at {address}"


def _says(failure: str, marks: tuple[str, ...]) -> bool:
    return any(mark in failure for mark in marks)
