"""Trying an agent out with one message."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body
from trunkline.api.headers import correlation_id_of
from trunkline.api.operations import JSON, add_operation, answer, body, problems, ref
from trunkline.api.routes.agents import AGENTS, AgentPath
from trunkline.api.services import Services
from trunkline.api.trial_views import trial_json
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject

_FIX = 'Send {"text": "…"}, or {"input": …} with what a step would give to the agent.'


class TrialRoutes:
    def __init__(self, services: Services) -> None:
        self._trials = services.test_calls
        self._most_bytes = services.limits.max_body_bytes

    async def try_out(self, request: Request, agent: AgentPath) -> Response:
        """
        Sends one message to the agent, as a step would, and answers with what came back and all that was on the wire.

        It is no run: nothing is kept or retried, and neither the agent's limits nor its breaker know of it. The agent
        does what it is asked to.
        """
        wish = _read(decode_object(await read_body(request, self._most_bytes)))
        trial = await self._trials.call(
            agent,
            wish.message,
            longest=wish.longest,
            correlation_id=correlation_id_of(request.scope),
        )
        return Response(trial_json(trial), media_type=JSON)


class _Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str | msgspec.UnsetType = msgspec.UNSET
    input: Json = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=60_000)] | msgspec.UnsetType = msgspec.UNSET

    @property
    def message(self) -> Json:
        return self.input if self.text is msgspec.UNSET else {"text": self.text}

    @property
    def longest(self) -> timedelta | None:
        return None if self.timeout_ms is msgspec.UNSET else timedelta(milliseconds=self.timeout_ms)


def _read(body: JsonObject) -> _Wish:
    try:
        wish = msgspec.convert(body, _Wish)
    except msgspec.ValidationError as exc:
        raise Invalid(f"The message is not valid: {exc}", fix=_FIX) from exc
    if ("text" in body) == ("input" in body):
        raise Invalid("The message is not valid: it has one of `text` and `input`.", fix=_FIX)
    return wish


def add_trial_routes(app: FastAPI, services: Services) -> None:
    routes = TrialRoutes(services)
    add_operation(
        app, f"POST {AGENTS}/{{agent}}/try", routes.try_out, name="try_agent", tag="agents",
        extra=body(ref("AgentMessage")),
        responses={200: answer("AgentTrial", "What came back."), **problems(400, 404, 413, 422)},
    )  # fmt: skip
