"""Checks of agents: run a check, and read the reports."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.resources.checks import CheckPage, CheckReport, CheckRequest, check_report, check_summary
from trunkline.api.resources.common import page_of
from trunkline.api.routes.agents import AGENTS, AgentParameter, AgentParameters
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject


class CheckParameters(AgentParameters, frozen=True, kw_only=True):
    check: Annotated[str, msgspec.Meta(description="The check's id.")]


class ListChecksParameters(TextPageParameters, frozen=True, kw_only=True):
    agent: AgentParameter


class CheckRoutes:
    def __init__(self, services: Services) -> None:
        self._checks = services.checks
        self._limits = services.limits

    async def check(self, request: Request, given: AgentParameters) -> Response:
        """
        Check whether an agent meets the requirements of its protocol, and store the report.

        The check uses the agent's credentials. Without `active`, it sends nothing that a correct agent treats as work.
        The response is a report even if the agent cannot be reached.
        """
        sent = await read_body(request, self._limits.max_body_bytes)
        wanted = _read(decode_object(sent)) if sent.strip() else CheckRequest()
        record = await self._checks.check(
            given.agent, protocol=wanted.protocol, active=wanted.active, sample=wanted.sample()
        )
        return json_response(check_report(record))

    async def list(self, _request: Request, given: ListChecksParameters) -> Response:
        """List the last checks of an agent, newest first, without their findings."""
        found = await self._checks.list(
            given.agent, limit=given.limit + 1, before=decode_cursor(given.cursor)
        )
        checks, next_cursor = page(found, given.limit, lambda record: record.id)
        return json_response(page_of([check_summary(record) for record in checks], next_cursor))

    async def get(self, _request: Request, given: CheckParameters) -> Response:
        """Get the complete report of a check."""
        return json_response(check_report(await self._checks.get(given.agent, given.check)))


def _read(body: JsonObject) -> CheckRequest:
    try:
        return msgspec.convert(body, CheckRequest)
    except msgspec.ValidationError as exc:
        fix = "Send an object with any of active, protocol, input and text, or no body at all."
        raise Invalid(f"The check request is invalid: {exc}", fix=fix) from exc


def check_operations(services: Services) -> list[Operation]:
    routes = CheckRoutes(services)
    one = f"{AGENTS}/{{agent}}"
    return [
        operation(
            f"POST {one}/check", routes.check, AgentParameters, name="check_agent", tag="agents",
            body=Body(CheckRequest, required=False),
            responses={200: ResponseSpec("The report of the check.", CheckReport)}, problems=(400, 404, 409, 413, 422),
        ),
        operation(
            f"GET {one}/checks", routes.list, ListChecksParameters, name="list_agent_checks", tag="agents",
            responses={200: ResponseSpec("A page of checks.", CheckPage)}, problems=(404, 422),
        ),
        operation(
            f"GET {one}/checks/{{check}}", routes.get, CheckParameters, name="get_agent_check", tag="agents",
            responses={200: ResponseSpec("The report.", CheckReport)}, problems=(404,),
        ),
    ]  # fmt: skip
