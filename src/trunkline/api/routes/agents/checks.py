"""What is sent to an agent outside of any run: checks, with their reports, and test calls of one message each."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body, with_whole_numbers
from trunkline.api.correlation_ids import correlation_id_of
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.resources.agents.checks import (
    CheckPage,
    CheckReport,
    CheckRequest,
    check_report,
    check_summary,
)
from trunkline.api.resources.agents.test_calls import AgentMessage, TestCallResult, test_call_result
from trunkline.api.resources.common import page_of
from trunkline.api.routes.agents.registry import AGENTS, AgentParameter, AgentParameters
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject

_MESSAGE_FIX = 'Send {"text": "…"}, or {"input": …} with the input as a step would send it.'


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


class AgentTestCallRoutes:
    def __init__(self, services: Services) -> None:
        self._test_calls = services.test_calls
        self._limits = services.limits

    async def call(self, request: Request, given: AgentParameters) -> Response:
        """
        Send a test message to an agent.

        The message is sent as a step would send it, and the agent does the work. The response contains the result and
        all exchanges with the agent. A test call is not a run: it is not stored or retried, and it does not count
        toward the agent's limits or its circuit breaker.
        """
        message = _read_message(decode_object(await read_body(request, self._limits.max_body_bytes)))
        result = await self._test_calls.call(
            given.agent,
            message.message,
            longest=message.longest,
            correlation_id=correlation_id_of(request.scope),
        )
        return json_response(test_call_result(result))


def _read_message(body: JsonObject) -> AgentMessage:
    try:
        message = msgspec.convert(with_whole_numbers(body, AgentMessage), AgentMessage)
    except msgspec.ValidationError as exc:
        raise Invalid(f"The message is invalid: {exc}", fix=_MESSAGE_FIX) from exc
    if ("text" in body) == ("input" in body):
        raise Invalid("The message is invalid: it must have either `text` or `input`.", fix=_MESSAGE_FIX)
    return message


def agent_test_call_operations(services: Services) -> list[Operation]:
    routes = AgentTestCallRoutes(services)
    return [
        operation(
            f"POST {AGENTS}/{{agent}}/try", routes.call, AgentParameters, name="try_agent", tag="agents",
            body=Body(AgentMessage), responses={200: ResponseSpec("The result of the call.", TestCallResult)},
            problems=(400, 404, 413, 422),
        ),
    ]  # fmt: skip
