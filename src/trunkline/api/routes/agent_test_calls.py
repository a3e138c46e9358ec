"""Test calls: one message to an agent, outside of any run."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body, with_whole_numbers
from trunkline.api.headers import correlation_id_of
from trunkline.api.resources.agent_test_calls import AgentMessage, TestCallResult, agent_trial
from trunkline.api.routes.agents import AGENTS, AgentParameters
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject

_FIX = 'Send {"text": "…"}, or {"input": …} with the input as a step would send it.'


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
        message = _read(decode_object(await read_body(request, self._limits.max_body_bytes)))
        result = await self._test_calls.call(
            given.agent,
            message.message,
            longest=message.longest,
            correlation_id=correlation_id_of(request.scope),
        )
        return json_response(agent_trial(result))


def _read(body: JsonObject) -> AgentMessage:
    try:
        message = msgspec.convert(with_whole_numbers(body, AgentMessage), AgentMessage)
    except msgspec.ValidationError as exc:
        raise Invalid(f"The message is invalid: {exc}", fix=_FIX) from exc
    if ("text" in body) == ("input" in body):
        raise Invalid("The message is invalid: it must have either `text` or `input`.", fix=_FIX)
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
