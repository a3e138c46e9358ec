"""
The endpoint for webhooks of triggers.

It needs no API key: the URL, and what the trigger verifies, authenticate the sender.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import read_body
from trunkline.api.correlation_ids import correlation_id_of
from trunkline.api.parameters import Parameters
from trunkline.api.resources.automation.triggers import WebhookAnswer
from trunkline.api.routing import JSON, Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Conflict
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject
from trunkline.services.triggers.webhooks import HOOK_PATH, Hook


class WebhookParameters(Parameters, frozen=True, kw_only=True):
    token: Annotated[str, Meta(description="Identifies the trigger.")]


class WebhookRoutes:
    def __init__(self, services: Services) -> None:
        self._webhooks = services.webhooks
        self._queries = services.run_queries
        self._limits = services.limits

    async def receive(self, request: Request, given: WebhookParameters) -> Response:
        """
        Start a run of a trigger's workflow by webhook.

        The trigger decides how a delivery must be signed, and what it leads to. A repeated delivery returns the same
        run.
        """
        hook = await self._webhooks.find(given.token)
        body = await read_body(request, min(hook.webhook.max_body_bytes, self._limits.max_body_bytes))
        headers: dict[str, str] = {}
        for name, value in request.headers.items():
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        query: JsonObject = dict(request.query_params)
        received = await self._webhooks.receive(hook, headers, query, body, correlation_id_of(request.scope))
        if received.challenge is not None:
            return json_response({"challenge": received.challenge})
        if received.run_id is None:
            return json_response({"id": None, "status": "FILTERED"}, 202)
        return await self._answer(hook, received.run_id)

    async def _answer(self, hook: Hook, run_id: RunId) -> Response:
        if hook.webhook.respond == "output":
            await self._queries.wait(run_id, hook.webhook.wait.total_seconds())
            record, _ = await self._queries.find(run_id)
            if record.status == "COMPLETED":
                return json_response(Raw(record.output or b"null"))
            if record.status in {"FAILED", "CANCELLED"}:
                raise Conflict(
                    f"The run {run_id} is {record.status}.", fix="See why: trunkline runs show RUN."
                )
        status, _ = await self._queries.status(run_id)
        return json_response({"id": run_id, "status": status}, 202)


def webhook_operations(services: Services) -> list[Operation]:
    return [
        operation(
            f"POST {HOOK_PATH}/{{token}}", WebhookRoutes(services).receive, WebhookParameters, name="receive_webhook",
            tag="hooks",
            body=Body({"description": "Any content. Its format depends on the sender."}, required=False),
            responses={
                200: ResponseSpec("The run's output, or Slack's challenge.", content={JSON: {}}),
                202: ResponseSpec("The run, or no run if the filter is false.", WebhookAnswer),
            },
            problems=(401, 404, 409, 413, 422, 429),
        )
    ]  # fmt: skip
