"""Checks of agents: run one, see those that were."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample
from trunkline.api.bodies import decode_object, read_body
from trunkline.api.check_views import check_json, checks_json
from trunkline.api.operations import JSON, add_operation, answer, body, problems, ref
from trunkline.api.paging import DEFAULT_LIMIT, Limit, TextCursor, decode_cursor, page
from trunkline.api.routes.agents import AGENTS, AgentPath
from trunkline.api.services import Services
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject

CheckPath = Annotated[str, Path(description="The check's id.")]


class CheckRoutes:
    def __init__(self, services: Services) -> None:
        self._checks = services.checks
        self._most_bytes = services.limits.max_body_bytes

    async def check(self, request: Request, agent: AgentPath) -> Response:
        """
        Checks now whether the agent does what its protocol asks for, with its own credentials, and keeps the report.

        Whatever the agent does, the answer is a report. Without `active` nothing is sent that a correct agent takes for
        work.
        """
        sent = await read_body(request, self._most_bytes)
        wish = _read(decode_object(sent)) if sent.strip() else _Wish()
        record = await self._checks.check(
            agent, protocol=wish.protocol, active=wish.active, sample=wish.sample()
        )
        return Response(check_json(record), media_type=JSON)

    async def list(
        self, agent: AgentPath, limit: Limit = DEFAULT_LIMIT, cursor: TextCursor = None
    ) -> Response:
        """The last checks of an agent, newest first, without their evidence."""
        found = await self._checks.list(agent, limit=limit + 1, before=decode_cursor(cursor))
        checks, next_cursor = page(found, limit, lambda record: record.id)
        return Response(checks_json(checks, next_cursor), media_type=JSON)

    async def get(self, agent: AgentPath, check: CheckPath) -> Response:
        """The whole report of a check."""
        return Response(check_json(await self._checks.get(agent, check)), media_type=JSON)


class _Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    active: bool = False
    protocol: str | None = None
    input: JsonObject | None = None
    text: str | None = None

    def sample(self) -> CheckSample:
        return CheckSample(input=self.input or DEFAULT_SAMPLE.input, text=self.text or DEFAULT_SAMPLE.text)


def _read(body: JsonObject) -> _Wish:
    try:
        return msgspec.convert(body, _Wish)
    except msgspec.ValidationError as exc:
        raise Invalid(f"The wish for a check is not valid: {exc}") from exc


def add_check_routes(app: FastAPI, services: Services) -> None:
    routes = CheckRoutes(services)
    add_operation(
        app, f"POST {AGENTS}/{{agent}}/check", routes.check, name="check_agent", tag="agents",
        extra=body(ref("CheckRequest"), required=False),
        responses={200: answer("CheckReport", "What was found."), **problems(400, 404, 409, 413, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}/{{agent}}/checks", routes.list, name="list_agent_checks", tag="agents",
        responses={200: answer("CheckPage", "A page of checks."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {AGENTS}/{{agent}}/checks/{{check}}", routes.get, name="get_agent_check", tag="agents",
        responses={200: answer("CheckReport", "The report."), **problems(404)},
    )  # fmt: skip
