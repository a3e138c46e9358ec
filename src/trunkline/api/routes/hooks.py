"""
The door for agents that ring when a task has moved on.

Needs no key: the address itself, and the token that the agent has to send along, are the proof. What the agent says
is read only to be dropped: it is asked, and its answer counts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import read_body
from trunkline.api.headers import find_header
from trunkline.api.parameters import Parameters, in_header
from trunkline.api.problems import KINDS, problem
from trunkline.api.routing import Body, Operation, ResponseSpec, operation
from trunkline.api.services import Services
from trunkline.errors import NotFound
from trunkline.services.agents.push_notifications import PUSH_PATH

_OTHER_TOKEN_HEADER = b"a2a-notification-token"


class PushNotificationParameters(Parameters, frozen=True, kw_only=True):
    token: Annotated[str, Meta(description="Names the task, and proves that Trunkline has made the address.")]
    notification_token: (
        Annotated[
            str,
            Meta(
                description="The token of the push configuration; `A2A-Notification-Token` is taken as well.",
                extra=in_header("X-A2A-Notification-Token"),
            ),
        ]
        | None
    ) = None


class HookRoutes:
    def __init__(self, services: Services) -> None:
        self._hooks = services.push_notifications
        self._limits = services.limits

    async def ring(self, request: Request, given: PushNotificationParameters) -> Response:
        """
        An agent says that a task has moved on. The body is not believed: the agent is asked.

        Ringing twice, or for a task that is over, does nothing.
        """
        result = await self._hooks.receive(given.token, _notification_token(request, given))
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


def _notification_token(request: Request, given: PushNotificationParameters) -> str:
    if given.notification_token is not None:
        return given.notification_token
    return (find_header(request.scope["headers"], _OTHER_TOKEN_HEADER) or b"").decode("latin-1")


def hook_operations(services: Services) -> list[Operation]:
    return [
        operation(
            f"POST {PUSH_PATH}/{{token}}", HookRoutes(services).ring, PushNotificationParameters, name="ring_for_task",
            tag="hooks",
            body=Body({"description": "The agent's notification."}, required=False),
            responses={204: ResponseSpec("Trunkline asks the agent.")},
            problems=(404, 413),
        )
    ]  # fmt: skip
