"""The recent activity of agents, per minute and per call."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict, cast

from msgspec import Meta

from trunkline.api.resources.common import NextCursor, Timestamp, time_or_none
from trunkline.clock import Instant, rfc3339
from trunkline.services.agents.activity import RecentActivity
from trunkline.stores.port.agents.activity import AgentMinute, EndedCall, begin_of

CallOutcome = Literal["success", "error", "interrupted", "cancelled", "unknown"]


class ActivityMinute(TypedDict):
    """The calls of an agent that ended within one minute."""

    at: Annotated[Timestamp, Meta(description="Start of the minute.")]
    calls: int
    failures: int
    mean_ms: Annotated[float, Meta(description="Average duration of a call, in milliseconds.")]
    longest_ms: int


class AgentCallResource(TypedDict):
    """One call of an agent, which is one attempt of a step, and its outcome."""

    run: str
    step: str
    attempt: int
    started_at: Annotated[Timestamp | None, Meta(description="Null if the call ended before it was sent.")]
    ended_at: Timestamp
    duration_ms: float | None
    outcome: Annotated[
        CallOutcome,
        Meta(
            description="`interrupted`: the agent asked a question. `unknown`: it is not known whether the "
            "agent did the work."
        ),
    ]
    error_code: str | None


class AgentCallPage(TypedDict):
    items: list[AgentCallResource]
    next_cursor: NextCursor


# `from` is a keyword.
_Period = TypedDict(
    "_Period",
    {
        "from": Timestamp,
        "to": Annotated[Timestamp, Meta(description="End of the current minute.")],
    },
)


class AgentActivity(_Period):
    """The recent calls of an agent, over all bridges."""

    minutes: Annotated[
        list[ActivityMinute], Meta(description="Oldest first. Minutes without a call are omitted.")
    ]
    last_call: Annotated[
        AgentCallResource | None,
        Meta(description="The call that ended last, even if it is older than the minutes listed."),
    ]


def agent_activity(activity: RecentActivity) -> AgentActivity:
    return {
        "from": rfc3339(activity.begin),
        "to": rfc3339(activity.end),
        "minutes": [_minute(each) for each in activity.minutes],
        "last_call": None if activity.last_call is None else agent_call(activity.last_call),
    }


def _minute(minute: AgentMinute) -> ActivityMinute:
    return {
        "at": rfc3339(begin_of(minute.minute)),
        "calls": minute.calls,
        "failures": minute.failures,
        "mean_ms": round(minute.total_ms / minute.calls, 1) if minute.calls else 0.0,
        "longest_ms": minute.longest_ms,
    }


def agent_call(call: EndedCall) -> AgentCallResource:
    return {
        "run": call.run_id,
        "step": call.step,
        "attempt": call.attempt,
        "started_at": time_or_none(call.called_at),
        "ended_at": rfc3339(call.ended_at),
        "duration_ms": _milliseconds(call.called_at, call.ended_at),
        # The store keeps it as a text.
        "outcome": cast("CallOutcome", call.outcome),
        "error_code": call.error_code,
    }


def _milliseconds(begin: Instant | None, end: Instant) -> float | None:
    return None if begin is None else max(0.0, (end - begin) / 1_000)
