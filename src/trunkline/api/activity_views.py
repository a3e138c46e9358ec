"""
What the API shows of agents beside how they are registered: their latest work, and their cards.

`schemas.activity` describes the same shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents import Agent
from trunkline.api.limit_views import limits_view
from trunkline.api.resources.agent_activity import agent_activity
from trunkline.api.views import agent_view, page_json
from trunkline.clock import rfc3339
from trunkline.jsontypes import encode
from trunkline.services.agents.activity import AgentOverview
from trunkline.services.agents.inspection import CardView
from trunkline.stores.port.agent_events import Grade


class _LastCheck(msgspec.Struct):
    id: str
    at: str
    grade: str
    passed: bool


def overviews_json(overviews: Sequence[AgentOverview], next_cursor: str | None) -> bytes:
    """Agents as in every list, with how each stands."""
    items = [
        {
            **msgspec.structs.asdict(agent_view(each.agent)),
            "limits": limits_view(each.agent.options, each.load),
            "activity": agent_activity(each.activity),
            "last_check": None if each.grade is None else _last_check(each.grade),
        }
        for each in overviews
    ]
    return page_json(items, next_cursor)


def card_json(agent: Agent, view: CardView) -> bytes:
    known = None if agent.dialect is None else agent.dialect.card_digest
    return encode(
        {
            "asked_at": rfc3339(view.asked_at),
            "url": view.url,
            "detail": view.detail,
            "card": view.card,
            # Of one that nobody has read before nobody can say so.
            "changed": None if view.digest is None or known is None else view.digest != known,
        }
    )


def _last_check(grade: Grade) -> _LastCheck:
    return _LastCheck(grade.check_id, rfc3339(grade.at), grade.grade, grade.passed)
