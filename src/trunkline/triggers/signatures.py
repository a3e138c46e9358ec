"""
Signatures of webhooks: the headers that a sender has to send, and how they are checked.

    standard-webhooks   webhook-id, webhook-timestamp, webhook-signature: v1,BASE64 of {id}.{timestamp}.{body}
    github              X-Hub-Signature-256: sha256=HEX of {body}
    stripe              Stripe-Signature: t=TIMESTAMP,v1=HEX of {timestamp}.{body}
    slack               X-Slack-Request-Timestamp, X-Slack-Signature: v0=HEX of v0:{timestamp}:{body}
    hmac                a header of the trigger's choice: HEX of {body}
    api-key             a header of the trigger's choice: the secret itself
    none                nothing: the address alone is the secret

All are HMAC with SHA-256. Where a timestamp is signed, an old or a future one is refused, so a recorded
delivery cannot be sent again later. Comparisons take constant time.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Literal, NamedTuple

from trunkline.clock import Instant

Scheme = Literal["standard-webhooks", "github", "stripe", "slack", "hmac", "api-key", "none"]
SCHEMES: tuple[Scheme, ...] = ("standard-webhooks", "github", "stripe", "slack", "hmac", "api-key", "none")
# Those whose header a trigger can choose, with its default.
HEADERS: Mapping[Scheme, str] = {"hmac": "x-signature", "api-key": "x-api-key"}

TOLERANCE = timedelta(minutes=5)
_WHSEC = "whsec_"
# A sender that signs with several secrets sends a signature for each.
_MAX_SIGNATURES = 16
_MAX_DIGITS = 15


class WebhookDelivery(NamedTuple):
    """What a sender sent: header names in lower case, and the body as it was sent."""

    headers: Mapping[str, str]
    body: bytes
    now: Instant


class _Signed(NamedTuple):
    """What was signed, and the signatures that were sent for it."""

    content: bytes
    signatures: Sequence[str]


def is_signed(
    delivery: WebhookDelivery, scheme: Scheme, secrets: Sequence[str], header: str | None = None
) -> bool:
    """Whether the delivery is signed with one of the secrets, and recently where the scheme says when."""
    header = (header or HEADERS.get(scheme, "")).lower()
    match scheme:
        case "none":
            return True
        case "api-key":
            return _any_equal([delivery.headers.get(header, "")], secrets)
        case "standard-webhooks":
            return _matches(_standard(delivery), secrets, _base64_mac)
        case "github":
            sent = delivery.headers.get("x-hub-signature-256", "")
            return _matches(_Signed(delivery.body, _with_prefix([sent], "sha256=")), secrets, _hex_mac)
        case "stripe":
            return _matches(_stripe(delivery), secrets, _hex_mac)
        case "slack":
            return _matches(_slack(delivery), secrets, _hex_mac)
        case "hmac":
            sent = delivery.headers.get(header, "").removeprefix("sha256=")
            return _matches(_Signed(delivery.body, [sent.lower()]), secrets, _hex_mac)


def standard_signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    return f"v1,{_base64_mac(secret, f'{message_id}.{timestamp}.'.encode() + body)}"


def default_key(delivery: WebhookDelivery, scheme: Scheme, body: object) -> str | None:
    """What identifies a delivery that its sender repeats, where the scheme has something for it."""
    match scheme:
        case "standard-webhooks":
            return delivery.headers.get("webhook-id")
        case "github":
            return delivery.headers.get("x-github-delivery")
        case "stripe":
            return _text_in(body, "id")
        case "slack":
            return _text_in(body, "event_id")
        case "hmac" | "api-key" | "none":
            return delivery.headers.get("idempotency-key")


def _standard(delivery: WebhookDelivery) -> _Signed | None:
    message_id = delivery.headers.get("webhook-id", "")
    timestamp = delivery.headers.get("webhook-timestamp", "")
    if not message_id or not _is_recent(timestamp, delivery.now):
        return None
    sent = delivery.headers.get("webhook-signature", "").split(" ")
    return _Signed(f"{message_id}.{timestamp}.".encode() + delivery.body, _with_prefix(sent, "v1,"))


def _stripe(delivery: WebhookDelivery) -> _Signed | None:
    parts = [part.strip() for part in delivery.headers.get("stripe-signature", "").split(",")]
    timestamp = next(iter(_with_prefix(parts, "t=")), "")
    if not _is_recent(timestamp, delivery.now):
        return None
    return _Signed(f"{timestamp}.".encode() + delivery.body, _with_prefix(parts, "v1="))


def _slack(delivery: WebhookDelivery) -> _Signed | None:
    timestamp = delivery.headers.get("x-slack-request-timestamp", "")
    if not _is_recent(timestamp, delivery.now):
        return None
    sent = delivery.headers.get("x-slack-signature", "")
    return _Signed(f"v0:{timestamp}:".encode() + delivery.body, _with_prefix([sent], "v0="))


def _matches(signed: _Signed | None, secrets: Sequence[str], mac: Callable[[str, bytes], str]) -> bool:
    if signed is None:
        return False
    return _any_equal(
        signed.signatures[:_MAX_SIGNATURES], [mac(secret, signed.content) for secret in secrets]
    )


def _any_equal(sent: Iterable[str], wanted: Sequence[str]) -> bool:
    equal = False
    for text in sent:
        for each in wanted:
            equal |= hmac.compare_digest(text.encode(errors="replace"), each.encode(errors="replace"))
    return equal


def _with_prefix(parts: Iterable[str], prefix: str) -> list[str]:
    return [part.removeprefix(prefix) for part in parts if part.startswith(prefix)]


def _is_recent(timestamp: str, now: Instant) -> bool:
    """Of a text of seconds since 1970."""
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > _MAX_DIGITS:
        return False
    return abs(now // 1_000_000 - int(timestamp)) <= TOLERANCE.total_seconds()


def _hex_mac(secret: str, content: bytes) -> str:
    return hmac.digest(secret.encode(), content, sha256).hex()


def _base64_mac(secret: str, content: bytes) -> str:
    return base64.b64encode(hmac.digest(_standard_key(secret), content, sha256)).decode()


def _standard_key(secret: str) -> bytes:
    """The bytes that `whsec_…` encodes. A text that is not Base64 is the key itself."""
    try:
        return base64.b64decode(secret.removeprefix(_WHSEC), validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()


def _text_in(body: object, key: str) -> str | None:
    value = body.get(key) if isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - JSON
    return value if isinstance(value, str) else None
