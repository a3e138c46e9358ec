"""One request to an agent and its answer; knows no dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline.agents.check_reports import Evidence, EvidenceRequest, EvidenceResponse
from trunkline.jsontypes import Json, JsonObject
from trunkline.protocols import AgentAnswer
from trunkline.protocols.answer_json import NotJson, json_kind, parse
from trunkline.telemetry.redaction import Redaction, redacted_text
from trunkline.transports.base import TransportError

# As much of one body as a person reads.
MAX_BYTES_SHOWN = 4 * 1024


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to send."""

    name: str
    # None: a GET.
    body: bytes | None
    headers: Mapping[str, str] = {}
    # Appended to the path of the endpoint.
    path: str = ""
    # Whether an agent may treat it as work.
    active: bool = False
    # The id that the answer must have, and the text of the message in it.
    id: Json = None
    text: str = ""


class ProbeExchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was sent: `answer`, or why there is none."""

    probe: ProbeRequest
    evidence: Evidence
    answer: AgentAnswer | None = None
    failure: TransportError | None = None
    # The answer's body as JSON, where it is.
    value: Json = None
    is_json: bool = False
    # Why a body cannot be read: it is not JSON, or not an object.
    unread: str = ""

    @property
    def status(self) -> int:
        return 0 if self.answer is None else self.answer.status

    @property
    def object(self) -> JsonObject:
        """The body if it is an object; otherwise an empty object."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def content_type(self) -> str:
        return "" if self.answer is None else self.answer.headers.get("content-type", "")

    def summary(self) -> str:
        """The answer in a few words."""
        if self.failure is not None:
            return self.failure.message
        if self.answer is not None and not self.answer.body:
            return f"HTTP {self.status} without a body"
        return f"HTTP {self.status} with {'JSON' if self.is_json else 'a body that is not JSON'}"


ProbeExchanges = Mapping[str, ProbeExchange]


def record_exchange(
    probe: ProbeRequest,
    *,
    method: Literal["GET", "POST"],
    url: str,
    headers: Mapping[str, str],
    outcome: AgentAnswer | TransportError,
    duration_ms: float,
    redaction: Redaction,
) -> ProbeExchange:
    """The exchange as evidence: redacted and truncated."""
    notes: list[str] = []
    answer = outcome.partial if isinstance(outcome, TransportError) else outcome
    failure = outcome if isinstance(outcome, TransportError) else None
    evidence = Evidence(
        request=EvidenceRequest(
            method=method,
            url=redaction.url(url),
            headers=redaction.sent_headers(headers),
            body=redacted_text(probe.body or b"", redaction, "The request body", notes, MAX_BYTES_SHOWN),
        ),
        duration_ms=duration_ms,
        response=None
        if answer is None
        else EvidenceResponse(
            status=answer.status,
            headers=redaction.received_headers(answer.headers),
            body=redacted_text(answer.body, redaction, "The response body", notes, MAX_BYTES_SHOWN),
        ),
        error=None if failure is None else redaction.text(failure.message),
        notes=notes,
    )
    if failure is not None or answer is None:
        return ProbeExchange(probe=probe, evidence=evidence, failure=failure)
    try:
        value = parse(answer.body)
    except NotJson as exc:
        return ProbeExchange(probe=probe, evidence=evidence, answer=answer, unread=str(exc))
    unread = "" if isinstance(value, dict) else f"The answer is {json_kind(value)}, not an object"
    return ProbeExchange(
        probe=probe, evidence=evidence, answer=answer, value=value, is_json=True, unread=unread
    )
