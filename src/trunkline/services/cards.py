"""What an agent says of itself, as it is asked now."""

from __future__ import annotations

from typing import Protocol

import msgspec

from trunkline.agents import Agent
from trunkline.clock import Instant
from trunkline.jsontypes import Json


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's card with nothing in it that must not be told; or, in words, why there is none."""

    asked_at: Instant
    # In words: a status and what it was, an error, no answer.
    detail: str
    # Where it was looked for last; None: nowhere.
    url: str | None = None
    card: Json = None
    # Of the card's bytes, as `Dialect.card_digest` has it.
    digest: str | None = None


class LookAtCard(Protocol):
    """Asks an agent for its card, with its own credentials; whatever it answers is a view."""

    async def __call__(self, agent: Agent) -> CardView: ...
