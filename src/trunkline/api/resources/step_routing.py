"""Why a step calls its agent, or calls none, as the REST API returns it."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import Timestamp
from trunkline.clock import rfc3339
from trunkline.machine.candidates import CandidateStatus
from trunkline.machine.state import AgentRoute, CacheUse


class CandidateResource(TypedDict):
    """An agent that a step could have called."""

    agent: str
    status: Annotated[
        CandidateStatus,
        Meta(
            description="What it was when the step chose. `busy`: it had no free slot, or no call by its rate limit."
        ),
    ]
    reason: Annotated[str, Meta(examples=["cost 0.002"])]


class RoutingResource(TypedDict):
    """Why a step calls its agent, if it chooses one when it begins."""

    agent: Annotated[
        str | None, Meta(description="The agent of the present call. Null if there is none yet.")
    ]
    reason: Annotated[
        str | None, Meta(description="Why the agent was chosen.", examples=["cheapest: cost 0.002"])
    ]
    candidates: Annotated[
        list[CandidateResource], Meta(description="The agents that were compared, the best first.")
    ]
    others: Annotated[int, Meta(description="How many other agents fit, in addition to `candidates`.")]
    tried: Annotated[
        list[str],
        Meta(description="Agents that have not accepted this attempt, or have lost against another one."),
    ]
    hedges: Annotated[
        list[str], Meta(description="Agents that have the same work at present, because `agent` is slow.")
    ]


class FromCacheResource(TypedDict):
    """Where the output of a step comes from that has called no agent."""

    run_id: Annotated[str, Meta(description="The run that the output comes from. It may have been deleted.")]
    step: str
    completed_at: Annotated[Timestamp, Meta(description="When that step completed.")]


def from_cache(use: CacheUse | None) -> FromCacheResource | None:
    if use is None or use.run_id is None or use.step is None or use.at is None:
        return None
    return {"run_id": use.run_id, "step": use.step, "completed_at": rfc3339(use.at)}


def step_routing(route: AgentRoute) -> RoutingResource:
    choice = route.choice
    return {
        "agent": route.agent or None,
        "reason": None if choice is None else choice.reason,
        "candidates": []
        if choice is None
        else [
            {"agent": each.agent, "status": each.status, "reason": each.reason} for each in choice.candidates
        ],
        "others": 0 if choice is None else choice.others,
        "tried": list(route.tried),
        "hedges": [hedge.agent for hedge in route.hedges],
    }
