"""Test calls: one message to an agent, outside of any run."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body, with_whole_numbers
from trunkline.api.headers import correlation_id_of
from trunkline.api.resources.agent_test_calls import AgentMessage, AgentTrial, agent_trial
from trunkline.api.routes.agents import AGENTS, AgentParameters
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject

_FIX = 'Send {"text": "…"}, or {"input": …} with what a step would give to the agent.'


class AgentTestCallRoutes:
    def __init__(self, services: Services) -> None:
        self._test_calls = services.test_calls
        self._limits = services.limits

    async def call(self, request: Request, given: AgentParameters) -> Response:
        """
        Sends one message to the agent, as a step would, and answers with what came back and all that was on the wire.

        It is no run: nothing is kept or retried, and neither the agent's limits nor its breaker know of it. The agent
        does what it is asked to.
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
        raise Invalid(f"The message is not valid: {exc}", fix=_FIX) from exc
    if ("text" in body) == ("input" in body):
        raise Invalid("The message is not valid: it has one of `text` and `input`.", fix=_FIX)
    return message


def agent_test_call_operations(services: Services) -> list[Operation]:
    routes = AgentTestCallRoutes(services)
    return [
        operation(
            f"POST {AGENTS}/{{agent}}/try", routes.call, AgentParameters, name="try_agent", tag="agents",
            body=Body(AgentMessage), responses={200: ResponseSpec("What came back.", AgentTrial)},
            problems=(400, 404, 413, 422),
        ),
    ]  # fmt: skip
