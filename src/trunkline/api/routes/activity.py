"""What agents had to do lately: minute by minute, and call by call."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query
from starlette.responses import Response

from trunkline.api.activity_views import activity_json, calls_json
from trunkline.api.operations import JSON, add_operation, answer, problems
from trunkline.api.paging import DEFAULT_LIMIT, Limit
from trunkline.api.routes.agents import AGENTS, AgentPath
from trunkline.api.services import Services
from trunkline.clock import Instant
from trunkline.services.agents.activity import MAX_MINUTES
from trunkline.stores.port.activity import CallPlace

_HOUR = 60

# The place of the last call given: when it ended, and its row.
CallCursor = Annotated[
    str | None,
    Query(
        description="`next_cursor` of the page before; leave it out for the first page.",
        pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$",
    ),
]
Minutes = Annotated[int, Query(ge=1, le=MAX_MINUTES, description="How many minutes, this one included.")]


class ActivityRoutes:
    def __init__(self, services: Services) -> None:
        self._activities = services.agent_activity

    async def activity(self, agent: AgentPath, minutes: Minutes = _HOUR) -> Response:
        """What an agent had to do lately, minute by minute."""
        return Response(activity_json(await self._activities.of(agent, minutes)), media_type=JSON)

    async def calls(
        self, agent: AgentPath, limit: Limit = DEFAULT_LIMIT, cursor: CallCursor = None
    ) -> Response:
        """The last attempts on an agent that have ended, newest first."""
        found = await self._activities.calls(agent, limit=limit + 1, before=_place(cursor))
        shown = found[:limit]
        next_cursor = _cursor(shown[-1].place) if len(found) > limit else None
        return Response(calls_json(shown, next_cursor), media_type=JSON)


def _cursor(place: CallPlace) -> str:
    return f"{place.ended_at}.{place.row}"


def _place(cursor: str | None) -> CallPlace | None:
    if cursor is None:
        return None
    ended_at, row = cursor.split(".")
    return CallPlace(Instant(int(ended_at)), int(row))


def add_activity_routes(app: FastAPI, services: Services) -> None:
    routes = ActivityRoutes(services)
    add_operation(
        app, f"GET {AGENTS}/{{agent}}/activity", routes.activity, name="get_agent_activity", tag="agents",
        responses={200: answer("AgentActivity", "The last minutes."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}/{{agent}}/calls", routes.calls, name="list_agent_calls", tag="agents",
        responses={200: answer("AgentCallPage", "A page of calls."), **problems(404, 422)},
    )  # fmt: skip
