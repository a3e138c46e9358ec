"""
The door for agents that ring when a task has moved on.

Needs no key: the address itself, and the token that the agent has to send along, are the proof. What the agent says
is read only to be dropped: it is asked, and its answer counts.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import read_body
from trunkline.api.headers import find_header
from trunkline.api.operations import Documentation, add_operation, answer, body, problems
from trunkline.api.problems import KINDS, problem
from trunkline.api.services import Services
from trunkline.errors import NotFound
from trunkline.services.agents.push_notifications import PUSH_PATH

_TOKEN_HEADERS = (b"x-a2a-notification-token", b"a2a-notification-token")

_PARAMETERS: list[Documentation] = [
    {
        "name": "token",
        "in": "path",
        "required": True,
        "description": "Names the task, and proves that Trunkline has made the address.",
        "schema": {"type": "string"},
    },
    {
        "name": "X-A2A-Notification-Token",
        "in": "header",
        "required": False,
        "description": "The token of the push configuration; `A2A-Notification-Token` is taken as well.",
        "schema": {"type": "string"},
    },
]


class HookRoutes:
    def __init__(self, services: Services) -> None:
        self._hooks = services.push_notifications
        self._limits = services.limits

    async def ring(self, request: Request) -> Response:
        """
        An agent says that a task has moved on. The body is not believed: the agent is asked.

        Ringing twice, or for a task that is over, does nothing.
        """
        result = await self._hooks.receive(request.path_params["token"], _token(request))
        if result == "refused":
            return problem(
                request,
                KINDS[NotFound],
                "There is no task that may be rung for like this.",
                "Use the URL and the token of the push configuration that came with the task, both unchanged.",
            )
        # Read, and dropped: an agent that is hung up on while it speaks takes that for a failure.
        await read_body(request, self._limits.max_body_bytes)
        return Response(status_code=204)


def _token(request: Request) -> str:
    found = (find_header(request.scope["headers"], name) for name in _TOKEN_HEADERS)
    return next((token for token in found if token is not None), b"").decode("latin-1")


def add_hook_routes(app: FastAPI, services: Services) -> None:
    add_operation(
        app, f"POST {PUSH_PATH}/{{token}}", HookRoutes(services).ring, name="ring_for_task", tag="hooks", ready=True,
        extra={
            "parameters": _PARAMETERS,
            **body({"description": "The agent's notification."}, required=False),
        },
        responses={204: answer(None, "Trunkline asks the agent."), **problems(404, 413)},
    )  # fmt: skip
