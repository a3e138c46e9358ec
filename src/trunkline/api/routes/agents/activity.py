"""The recent activity of agents, per minute and per call."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.paging import CURSOR, DEFAULT_LIMIT, PageLimit
from trunkline.api.resources.agents.activity import AgentActivity, AgentCallPage, agent_activity, agent_call
from trunkline.api.resources.common import page_of
from trunkline.api.routes.agents.registry import AGENTS, AgentParameters
from trunkline.api.routing import Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.clock import Instant
from trunkline.services.agents.activity import MAX_MINUTES
from trunkline.stores.port.agents.activity import CallPosition

_HOUR = 60


class ActivityParameters(AgentParameters, frozen=True, kw_only=True):
    minutes: Annotated[
        int, Meta(ge=1, le=MAX_MINUTES, description="Number of minutes, including the current one.")
    ] = _HOUR


class ListCallsParameters(AgentParameters, frozen=True, kw_only=True):
    limit: PageLimit = DEFAULT_LIMIT
    # The position of the last call of the previous page: when it ended, and its row.
    cursor: Annotated[str, Meta(description=CURSOR, pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")] | None = None


class ActivityRoutes:
    def __init__(self, services: Services) -> None:
        self._activities = services.agent_activity

    async def activity(self, _request: Request, given: ActivityParameters) -> Response:
        """Get an agent's recent activity, per minute."""
        return json_response(agent_activity(await self._activities.of(given.agent, given.minutes)))

    async def calls(self, _request: Request, given: ListCallsParameters) -> Response:
        """List an agent's finished calls, newest first."""
        limit = given.limit
        found = await self._activities.calls(given.agent, limit=limit + 1, before=_place(given.cursor))
        shown = found[:limit]
        next_cursor = _cursor(shown[-1].place) if len(found) > limit else None
        return json_response(page_of([agent_call(each) for each in shown], next_cursor))


def _cursor(place: CallPosition) -> str:
    return f"{place.ended_at}.{place.row}"


def _place(cursor: str | None) -> CallPosition | None:
    if cursor is None:
        return None
    ended_at, row = cursor.split(".")
    return CallPosition(Instant(int(ended_at)), int(row))


def activity_operations(services: Services) -> list[Operation]:
    routes = ActivityRoutes(services)
    one = f"{AGENTS}/{{agent}}"
    return [
        operation(
            f"GET {one}/activity", routes.activity, ActivityParameters, name="get_agent_activity", tag="agents",
            responses={200: ResponseSpec("The recent activity.", AgentActivity)}, problems=(404, 422),
        ),
        operation(
            f"GET {one}/calls", routes.calls, ListCallsParameters, name="list_agent_calls", tag="agents",
            responses={200: ResponseSpec("A page of calls.", AgentCallPage)}, problems=(404, 422),
        ),
    ]  # fmt: skip
