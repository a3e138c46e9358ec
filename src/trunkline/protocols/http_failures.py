"""
What the HTTP side of an answer says, whatever the dialect.

    3xx                                    agent_redirected, with the Location
    Content-Encoding: gzip, …              agent_answer_compressed
    4xx, 5xx, no body of the dialect       agent_http_error, with the status and an excerpt of the body
    Retry-After: 120 | an HTTP date        error.retry_after_ms (a date counts from the answer's own Date)
"""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import parsedate_to_datetime

import msgspec

from trunkline.protocols.outcomes import AgentAnswer, Failed, Outcome, Succeeded, step_error

# Enough for a sentence and an error code; the whole body is in the step's wire record.
_EXCERPT_CHARACTERS = 200
_EXCERPT_SOURCE_BYTES = 4096
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)

# What a server answers that understands HTTP but not this request.
_NOT_MY_DIALECT = frozenset({400, 404, 405, 415, 422, 501})

# The same request is wanted elsewhere, so it was not taken here; after a 302 or 303 it may have been.
_SENT_ELSEWHERE = frozenset({307, 308})

_CONTENT_TYPE_FIX = (
    "The agent receives the request but can't parse it: let it accept Content-Type application/json, which "
    "is what Trunkline sends."
)
_FIXES = {
    400: "The agent could not read the request: check that its protocol is the registered one, that it "
    "accepts Content-Type application/json, and where it looks for its input.",
    401: "Set the agent's auth_type and auth_config.",
    403: "Check the agent's auth_type and auth_config. The agent identified the caller but denied access.",
    404: "Check the path in the agent's url.",
    405: "Check the path in the agent's url: that path does not accept POST requests.",
    413: "Send less data, or raise the agent's limit for request bodies; some servers stop at 100 kB.",
    415: _CONTENT_TYPE_FIX,
    422: "The agent could not read its input: check that its protocol is the registered one, and where it "
    "looks for its input.",
    429: "Lower the agent's max_concurrency, or raise its rate limit.",
}


def failure_without_body(answer: AgentAnswer) -> Failed | None:
    """An answer whose body says nothing, however it reads."""
    if 300 <= answer.status < 400:
        target = answer.headers.get("location", "an address that it does not specify")
        message = (
            f"The agent answered HTTP {answer.status} and redirects to {target}; redirects are not followed"
        )
        return Failed(
            error=step_error("agent_redirected", message, http_status=answer.status),
            other_dialect=answer.status in _SENT_ELSEWHERE,
        )
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        message = (
            f"The answer is compressed (Content-Encoding: {encoding}), although Trunkline did not request "
            "compression"
        )
        return Failed(error=step_error("agent_answer_compressed", message, http_status=answer.status))
    return None


def http_failure(answer: AgentAnswer, request_size: int) -> Failed:
    """A 4xx or 5xx whose body is none of the dialect."""
    said = excerpt(answer.body)
    if answer.status == 413:
        message = f"The agent answered HTTP 413: the request of {request_size:,} bytes is too large for it"
    else:
        message = f"The agent answered HTTP {answer.status}"
    mentions_content_type = answer.status == 400 and "content-type" in said.lower()
    return Failed(
        error=step_error(
            "agent_http_error",
            f"{message}: {said}" if said else message,
            fix=_CONTENT_TYPE_FIX if mentions_content_type else _FIXES.get(answer.status, ""),
            http_status=answer.status,
            retry_after_ms=retry_after_ms(answer),
        ),
        other_dialect=answer.status in _NOT_MY_DIALECT,
    )


def fix_for_status(status: int | None) -> str:
    """What to do about an HTTP status; empty where nothing in particular helps."""
    return _FIXES.get(status, "") if status is not None else ""


def add_http_details(outcome: Outcome, answer: AgentAnswer) -> Outcome:
    """The outcome that a body of the dialect has, with what status and headers add to it."""
    match outcome:
        case Failed(error=error):
            error = msgspec.structs.replace(
                error,
                http_status=answer.status if answer.status >= 400 else None,
                retry_after_ms=retry_after_ms(answer),
            )
            return msgspec.structs.replace(outcome, error=error)
        case Succeeded(warnings=warnings) if answer.status >= 400:
            note = f"The agent answered HTTP {answer.status} with a body that says success"
            return msgspec.structs.replace(outcome, warnings=(*warnings, note))
        case _:
            return outcome


def retry_after_ms(answer: AgentAnswer) -> int | None:
    value = answer.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdecimal():
        # More digits than any wait has: not worth the conversion.
        return int(value) * 1000 if len(value) < 10 else None
    until, now = _http_date(value), _http_date(answer.headers.get("date", ""))
    if until is None or now is None:
        return None
    return max(0, round((until - now).total_seconds() * 1000))


def excerpt(body: bytes) -> str:
    """The body's first words, on one line, without markup."""
    text = body[:_EXCERPT_SOURCE_BYTES].decode(errors="replace")
    words = " ".join(_TAG.sub(" ", text).split())
    printable = "".join(character if character.isprintable() else "�" for character in words)
    return printable if len(printable) <= _EXCERPT_CHARACTERS else printable[:_EXCERPT_CHARACTERS] + "…"


def _http_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date that ends in -0000 has no zone; HTTP dates have, so it says nothing.
    return date if date.tzinfo is not None else None
