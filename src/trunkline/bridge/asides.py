"""Requests that have to be made before an agent can be called: for its card, or for a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from trunkline.bridge.exchanges import SentRequest
from trunkline.clock import Instant
from trunkline.protocols import AgentAnswer
from trunkline.telemetry.redaction import Redaction


class AuxiliaryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One of them and what came of it, for the record."""

    kind: Literal["card", "token"]
    redaction: Redaction
    sent: SentRequest
    answer: AgentAnswer | None
    started_at: Instant
    duration_ms: float
    error: str | None = None
    notes: tuple[str, ...] = ()


# Hears of every request that was made.
AuxiliaryRecorder: TypeAlias = Callable[[AuxiliaryRequest], None]
