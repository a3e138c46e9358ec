"""Agents: register, read, change and delete them, and check their health."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.agents import Agent
from trunkline.api.bodies import decode_object, read_body
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.parameters import Parameters, in_header
from trunkline.api.problems import AgentUnclear
from trunkline.api.resources.agents.registry import (
    AgentCardView,
    AgentHealth,
    AgentMetadataResource,
    AgentPage,
    AgentPatch,
    agent_card,
    agent_health,
    agent_overview,
    agent_resource,
    listed_agent,
)
from trunkline.api.resources.common import page_of
from trunkline.api.routing import (
    ETAG,
    JSON,
    LOCATION,
    Body,
    Operation,
    ResponseSpec,
    json_response,
    operation,
)
from trunkline.api.services import Services
from trunkline.errors import StaleVersion
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.activity import MAX_MINUTES_OF_MANY
from trunkline.services.agents.registry import AgentSearch
from trunkline.services.agents.specs import parse_spec

AGENTS = "/api/v1/agents"
MERGE_PATCH = "application/merge-patch+json"
# Declared in `api.schemas`, because Python code that prepares a registration uses it.
_AGENT_CREATE: JsonObject = {"$ref": "#/components/schemas/AgentCreate"}
AgentParameter = Annotated[str, Meta(description="The agent's name or id.")]
# Strong tags only: If-Match never matches a weak one.
_TAG = re.compile(r'(?<!W/)"([0-9]{1,18})"')


class AgentParameters(Parameters, frozen=True, kw_only=True):
    agent: AgentParameter


class ChangeAgentParameters(AgentParameters, frozen=True, kw_only=True):
    if_match: (
        Annotated[
            str,
            Meta(
                description="The `ETag` of the version you read. If the agent has changed since, the request "
                "fails with 412.",
                extra=in_header("If-Match"),
            ),
        ]
        | None
    ) = None


class ListAgentsParameters(TextPageParameters, frozen=True, kw_only=True):
    protocol: (
        Annotated[str, Meta(description="Return only agents that are registered with this protocol.")] | None
    ) = None
    skill: Annotated[str, Meta(description="Return only agents with this skill.")] | None = None
    tag: Annotated[str, Meta(description="Return only agents with this tag.")] | None = None
    q: (
        Annotated[
            str,
            Meta(
                max_length=255,
                description="Return only agents with this text in their name, description, tags or skills. Case is "
                "ignored.",
            ),
        ]
        | None
    ) = None
    activity: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_MINUTES_OF_MANY,
                description="Include this many minutes of activity, the limits and the last check of each "
                "agent.",
            ),
        ]
        | None
    ) = None


class AgentRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._registry = services.registry

    async def create(self, request: Request) -> Response:
        """Register an agent."""
        agent = await self._registry.create(parse_spec(await self._document(request)))
        return await self._shown(agent, 201, {"Location": f"{AGENTS}/{quote(agent.name, safe='')}"})

    async def list(self, _request: Request, given: ListAgentsParameters) -> Response:
        """List agents, sorted by name."""
        found = await self._registry.search(
            AgentSearch(skill=given.skill, tag=given.tag, text=given.q),
            limit=given.limit + 1,
            after=decode_cursor(given.cursor),
            protocol=given.protocol,
        )
        agents, next_cursor = page(found, given.limit, lambda agent: agent.name)
        if given.activity is None:
            return json_response(page_of([listed_agent(agent) for agent in agents], next_cursor))
        overviews = await self._services.agent_activity.overviews(agents, given.activity)
        return json_response(page_of([agent_overview(each) for each in overviews], next_cursor))

    async def get(self, _request: Request, given: AgentParameters) -> Response:
        """Get an agent. Its credentials are never returned."""
        return await self._shown(await self._registry.get(given.agent))

    async def replace(self, request: Request, given: ChangeAgentParameters) -> Response:
        """Replace an agent. If `auth_config` is omitted, the stored credentials are kept."""
        spec = parse_spec(await self._document(request))
        expected = await self._expected_version(given)
        return await self._shown(await self._registry.replace(given.agent, spec, if_match=expected))

    async def patch(self, request: Request, given: ChangeAgentParameters) -> Response:
        """Change fields of an agent with a JSON merge patch."""
        document = await self._document(request)
        expected = await self._expected_version(given)
        return await self._shown(await self._registry.patch(given.agent, document, if_match=expected))

    async def delete(self, _request: Request, given: ChangeAgentParameters) -> Response:
        """Delete an agent."""
        await self._registry.delete(given.agent, if_match=await self._expected_version(given))
        return Response(status_code=204)

    async def health(self, _request: Request, given: AgentParameters) -> Response:
        """Check whether an agent can be reached, without sending it work."""
        report = await self._services.check_health(await self._registry.get(given.agent))
        return json_response(agent_health(report))

    async def card(self, _request: Request, given: AgentParameters) -> Response:
        """Fetch an agent's current card. The stored dialect does not change."""
        known = await self._registry.get(given.agent)
        return json_response(agent_card(known, await self._services.view_card(known)))

    async def refresh(self, _request: Request, given: AgentParameters) -> Response:
        """Re-detect an agent's dialect now, instead of at the next call."""
        unclear = await self._services.refresh_dialect(await self._registry.get(given.agent))
        if unclear is not None:
            raise AgentUnclear(unclear.message, fix=unclear.fix)
        return await self._shown(await self._registry.get(given.agent))

    async def reset(self, _request: Request, given: AgentParameters) -> Response:
        """Close an agent's circuit breaker and reset its rate limit, so that waiting tasks can start immediately."""
        return await self._shown(await self._registry.reset(given.agent))

    async def _shown(
        self, agent: Agent, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The agent with its load and the state of its migration."""
        state = await self._services.migration_plan.state(agent)
        resource = agent_resource(agent, await self._registry.load_of(agent), state)
        return json_response(resource, status, {"ETag": _etag(agent), **(headers or {})})

    async def _document(self, request: Request) -> JsonObject:
        return decode_object(await read_body(request, self._services.limits.max_body_bytes))

    async def _expected_version(self, given: ChangeAgentParameters) -> int | None:
        """The current version, if `If-Match` accepts it."""
        if given.if_match is None or given.if_match.strip() == "*":
            return None
        present = await self._registry.get(given.agent)
        if str(present.version) in _TAG.findall(given.if_match):
            return present.version
        raise StaleVersion(f"The agent has version {_etag(present)}, but If-Match is {given.if_match}.")


def _etag(agent: Agent) -> str:
    return f'"{agent.version}"'


def agent_operations(services: Services) -> list[Operation]:
    routes = AgentRoutes(services)
    one = f"{AGENTS}/{{agent}}"
    shown = {200: ResponseSpec("The agent.", AgentMetadataResource, headers=ETAG)}
    return [
        operation(
            f"POST {AGENTS}", routes.create, name="create_agent", tag="agents", body=Body(_AGENT_CREATE),
            responses={
                201: ResponseSpec("The registered agent.", AgentMetadataResource, headers={**ETAG, **LOCATION})
            },
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"GET {AGENTS}", routes.list, ListAgentsParameters, name="list_agents", tag="agents",
            responses={200: ResponseSpec("A page of agents.", AgentPage)}, problems=(422,),
        ),
        operation(
            f"GET {one}", routes.get, AgentParameters, name="get_agent", tag="agents",
            responses=shown, problems=(404,),
        ),
        operation(
            f"PUT {one}", routes.replace, ChangeAgentParameters, name="replace_agent", tag="agents",
            body=Body(_AGENT_CREATE), responses=shown, problems=(400, 404, 409, 412, 413, 422),
        ),
        operation(
            f"PATCH {one}", routes.patch, ChangeAgentParameters, name="patch_agent", tag="agents",
            body=Body(AgentPatch, media_types=(MERGE_PATCH, JSON)), responses=shown,
            problems=(400, 404, 409, 412, 413, 422),
        ),
        operation(
            f"DELETE {one}", routes.delete, ChangeAgentParameters, name="delete_agent", tag="agents",
            responses={204: ResponseSpec("The agent was deleted.")}, problems=(404, 409, 412),
        ),
        operation(
            f"GET {one}/health", routes.health, AgentParameters, name="check_agent_health", tag="agents",
            responses={200: ResponseSpec("The result of the health check.", AgentHealth)}, problems=(404,),
        ),
        operation(
            f"GET {one}/card", routes.card, AgentParameters, name="get_agent_card", tag="agents",
            responses={200: ResponseSpec("The card, or why there is none.", AgentCardView)}, problems=(404,),
        ),
        operation(
            f"POST {one}/refresh", routes.refresh, AgentParameters, name="refresh_agent", tag="agents",
            responses=shown, problems=(404,),
        ),
        operation(
            f"POST {one}/reset", routes.reset, AgentParameters, name="reset_agent", tag="agents",
            responses=shown, problems=(404,),
        ),
    ]  # fmt: skip
