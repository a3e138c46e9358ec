"""Bytes of the wire as a record shows them: redacted, readable, and cut where they are long."""

from __future__ import annotations

from codecs import utf_8_decode

from trunkline.telemetry.redaction import Redaction


def record_text(
    body: bytes, redaction: Redaction, what: str, notes: list[str], most_bytes: int, *, more: str = ""
) -> str:
    """`notes` gets what the text does not show of `what`; `more` is how to have more of it."""
    size = len(body)
    if size <= most_bytes:
        return redaction.text(_decoded(body, what, notes))
    notes.append(" ".join((f"{what} is cut: it has {size:,} bytes, {most_bytes:,} are kept.", more)).rstrip())
    # Redacted before it is cut, or half a secret would remain at the edge. The edge of this piece may hold
    # half a secret too, so that much of it goes again.
    margin = max(4 * redaction.longest, 4)
    text = redaction.text(_decoded(body[: most_bytes + margin], what, notes, whole=False))
    whole = text[: -max(redaction.longest, 1)]
    return whole.encode()[:most_bytes].decode("utf-8", "ignore")


def _decoded(body: bytes, what: str, notes: list[str], *, whole: bool = True) -> str:
    # Not whole: the last character may be cut through without being wrong.
    try:
        return utf_8_decode(body, "strict", whole)[0]
    except UnicodeDecodeError:
        notes.append(f"{what} is not UTF-8; what is not is shown as \N{REPLACEMENT CHARACTER}.")
        return utf_8_decode(body, "replace", whole)[0]
