"""
What the API shows of agents beside how they are registered: their latest work, and their cards.

`schemas.activity` describes the same shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents import Agent
from trunkline.api.limit_views import limits_view
from trunkline.api.views import agent_view, page_json
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import encode
from trunkline.services.agents.activity import AgentOverview, RecentActivity
from trunkline.services.agents.inspection import CardView
from trunkline.stores.port.activity import AgentMinute, EndedCall, begin_of
from trunkline.stores.port.agent_events import Grade


class _Minute(msgspec.Struct):
    at: str
    calls: int
    failures: int
    mean_ms: float
    longest_ms: int


class _Call(msgspec.Struct):
    run: str
    step: str
    attempt: int
    started_at: str | None
    ended_at: str
    duration_ms: float | None
    outcome: str
    error_code: str | None


class _Activity(msgspec.Struct, rename={"begin": "from", "end": "to"}):
    begin: str
    end: str
    minutes: list[_Minute]
    last_call: _Call | None


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
            "activity": _activity(each.activity),
            "last_check": None if each.grade is None else _last_check(each.grade),
        }
        for each in overviews
    ]
    return page_json(items, next_cursor)


def activity_json(activity: RecentActivity) -> bytes:
    return encode(_activity(activity))


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


def calls_json(calls: Sequence[EndedCall], next_cursor: str | None) -> bytes:
    return page_json([_call(each) for each in calls], next_cursor)


def _activity(activity: RecentActivity) -> _Activity:
    return _Activity(
        rfc3339(activity.begin),
        rfc3339(activity.end),
        [_minute(each) for each in activity.minutes],
        None if activity.last_call is None else _call(activity.last_call),
    )


def _minute(minute: AgentMinute) -> _Minute:
    return _Minute(
        rfc3339(begin_of(minute.minute)),
        minute.calls,
        minute.failures,
        round(minute.total_ms / minute.calls, 1) if minute.calls else 0.0,
        minute.longest_ms,
    )


def _call(call: EndedCall) -> _Call:
    return _Call(
        call.run_id,
        call.step,
        call.attempt,
        None if call.called_at is None else rfc3339(call.called_at),
        rfc3339(call.ended_at),
        _milliseconds(call.called_at, call.ended_at),
        call.outcome,
        call.error_code,
    )


def _milliseconds(begin: Instant | None, end: Instant) -> float | None:
    return None if begin is None else max(0.0, (end - begin) / 1_000)


def _last_check(grade: Grade) -> _LastCheck:
    return _LastCheck(grade.check_id, rfc3339(grade.at), grade.grade, grade.passed)
