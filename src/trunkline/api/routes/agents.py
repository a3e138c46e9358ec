"""Agents: register, read, change, remove, ask how they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Header, Path, Query
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.agents import Agent
from trunkline.api.activity_views import card_json, overviews_json
from trunkline.api.bodies import decode_object, read_body
from trunkline.api.operations import ETAG, JSON, LOCATION, add_operation, answer, body, problems, ref
from trunkline.api.paging import DEFAULT_LIMIT, Limit, TextCursor, decode_cursor, page
from trunkline.api.parameters import Parameters
from trunkline.api.problems import AgentUnclear
from trunkline.api.resources.migration import migration_state
from trunkline.api.services import Services
from trunkline.api.views import agent_json, agents_json, health_json
from trunkline.errors import StaleVersion
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.activity import MAX_MINUTES_OF_MANY
from trunkline.services.agents.specs import parse_spec

AGENTS = "/api/v1/agents"
MERGE_PATCH = "application/merge-patch+json"
AgentParameter = Annotated[str, Meta(description="The agent's name or id.")]
AgentPath = Annotated[str, Path(description="The agent's name or id.")]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The `ETag` that was read; the call is refused if the agent has changed since.",
    ),
]
# Strong tags only: If-Match never matches a weak one.
_TAG = re.compile(r'(?<!W/)"([0-9]{1,18})"')


class AgentParameters(Parameters, frozen=True, kw_only=True):
    agent: AgentParameter


class AgentRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._registry = services.registry

    async def create(self, request: Request) -> Response:
        """Registers an agent."""
        agent = await self._registry.create(parse_spec(await self._document(request)))
        return await self._shown(agent, 201, {"Location": f"{AGENTS}/{quote(agent.name, safe='')}"})

    async def list(
        self,
        limit: Limit = DEFAULT_LIMIT,
        cursor: TextCursor = None,
        protocol: Annotated[
            str | None, Query(description="Only agents that are registered with this one.")
        ] = None,
        activity: Annotated[
            int | None,
            Query(
                ge=1,
                le=MAX_MINUTES_OF_MANY,
                description="So many minutes of what each had to do, with its limits and its last check.",
            ),
        ] = None,
    ) -> Response:
        """Agents by name."""
        found = await self._registry.list(limit=limit + 1, after=decode_cursor(cursor), protocol=protocol)
        agents, next_cursor = page(found, limit, lambda agent: agent.name)
        if activity is None:
            return Response(agents_json(agents, next_cursor), media_type=JSON)
        overviews = await self._services.agent_activity.overviews(agents, activity)
        return Response(overviews_json(overviews, next_cursor), media_type=JSON)

    async def get(self, agent: AgentPath) -> Response:
        """One agent; its secret is never shown."""
        return await self._shown(await self._registry.get(agent))

    async def replace(self, request: Request, agent: AgentPath, if_match: IfMatch = None) -> Response:
        """Describes an agent anew; a secret that is not given stays."""
        spec = parse_spec(await self._document(request))
        expected = await self._expected_version(agent, if_match)
        return await self._shown(await self._registry.replace(agent, spec, if_match=expected))

    async def patch(self, request: Request, agent: AgentPath, if_match: IfMatch = None) -> Response:
        """Changes what the JSON merge patch names."""
        document = await self._document(request)
        expected = await self._expected_version(agent, if_match)
        return await self._shown(await self._registry.patch(agent, document, if_match=expected))

    async def delete(self, agent: AgentPath, if_match: IfMatch = None) -> Response:
        """Removes an agent."""
        await self._registry.delete(agent, if_match=await self._expected_version(agent, if_match))
        return Response(status_code=204)

    async def health(self, agent: AgentPath) -> Response:
        """Asks the agent whether it is there, without giving it work."""
        report = await self._services.check_health(await self._registry.get(agent))
        return Response(health_json(report), media_type=JSON)

    async def card(self, agent: AgentPath) -> Response:
        """The agent's card as it is now; nothing is decided or kept by it."""
        known = await self._registry.get(agent)
        return Response(card_json(known, await self._services.view_card(known)), media_type=JSON)

    async def refresh(self, agent: AgentPath) -> Response:
        """Looks now what the agent speaks, instead of when it is called next."""
        unclear = await self._services.refresh_dialect(await self._registry.get(agent))
        if unclear is not None:
            raise AgentUnclear(unclear.message, fix=unclear.fix)
        return await self._shown(await self._registry.get(agent))

    async def reset(self, agent: AgentPath) -> Response:
        """Closes the agent's breaker and fills its bucket: tasks that wait for it may go at once."""
        return await self._shown(await self._registry.reset(agent))

    async def _shown(
        self, agent: Agent, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """With what it has to do, and where its migration stands."""
        state = await self._services.migration_plan.state(agent)
        document = agent_json(agent, await self._registry.load_of(agent), migration_state(state))
        return Response(document, status, {"ETag": _etag(agent), **(headers or {})}, media_type=JSON)

    async def _document(self, request: Request) -> JsonObject:
        return decode_object(await read_body(request, self._services.limits.max_body_bytes))

    async def _expected_version(self, agent: str, if_match: str | None) -> int | None:
        """The version that the caller has read, out of all those it would accept."""
        if if_match is None or if_match.strip() == "*":
            return None
        present = await self._registry.get(agent)
        if str(present.version) in _TAG.findall(if_match):
            return present.version
        raise StaleVersion(f"The agent is at version {_etag(present)}, If-Match says {if_match}.")


def _etag(agent: Agent) -> str:
    return f'"{agent.version}"'


def add_agent_routes(app: FastAPI, services: Services) -> None:
    routes = AgentRoutes(services)
    shown = answer("AgentMetadata", "The agent.", headers=ETAG)
    add_operation(
        app, f"POST {AGENTS}", routes.create, name="create_agent", tag="agents", extra=body(ref("AgentCreate")),
        responses={
            201: answer("AgentMetadata", "The agent, registered.", headers={**ETAG, **LOCATION}),
            **problems(400, 409, 413, 422),
        },
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}", routes.list, name="list_agents", tag="agents",
        responses={200: answer("AgentPage", "A page of agents."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}/{{agent}}", routes.get, name="get_agent", tag="agents",
        responses={200: shown, **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"PUT {AGENTS}/{{agent}}", routes.replace, name="replace_agent", tag="agents",
        extra=body(ref("AgentCreate")), responses={200: shown, **problems(400, 404, 409, 412, 413, 422)},
    )  # fmt: skip
    add_operation(
        app, f"PATCH {AGENTS}/{{agent}}", routes.patch, name="patch_agent", tag="agents",
        extra=body(ref("AgentPatch"), media_types=(MERGE_PATCH, JSON)),
        responses={200: shown, **problems(400, 404, 409, 412, 413, 422)},
    )  # fmt: skip
    add_operation(
        app, f"DELETE {AGENTS}/{{agent}}", routes.delete, name="delete_agent", tag="agents",
        responses={204: answer(None, "The agent is gone."), **problems(404, 409, 412)},
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}/{{agent}}/health", routes.health, name="check_agent_health", tag="agents",
        responses={200: answer("AgentHealth", "What the check has found."), **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}/{{agent}}/card", routes.card, name="get_agent_card", tag="agents",
        responses={200: answer("AgentCardView", "The card, or why there is none."), **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"POST {AGENTS}/{{agent}}/refresh", routes.refresh, name="refresh_agent", tag="agents",
        responses={200: shown, **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"POST {AGENTS}/{{agent}}/reset", routes.reset, name="reset_agent", tag="agents",
        responses={200: shown, **problems(404)},
    )  # fmt: skip
