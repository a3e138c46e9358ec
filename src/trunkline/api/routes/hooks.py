"""
The endpoint for push notifications from agents.

It needs no API key: the URL and the token in the header authenticate the agent. The content of a notification is
ignored. The agent is polled instead, and only its answer counts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import read_body
from trunkline.api.correlation_ids import find_header
from trunkline.api.parameters import Parameters, in_header
from trunkline.api.problems import KINDS, problem
from trunkline.api.routing import Body, Operation, ResponseSpec, operation
from trunkline.api.services import Services
from trunkline.errors import NotFound
from trunkline.services.agents.push_notifications import PUSH_PATH

_OTHER_TOKEN_HEADER = b"a2a-notification-token"


class PushNotificationParameters(Parameters, frozen=True, kw_only=True):
    token: Annotated[str, Meta(description="Signed token that identifies the task.")]
    notification_token: (
        Annotated[
            str,
            Meta(
                description="The token of the push configuration. `A2A-Notification-Token` is accepted, too.",
                extra=in_header("X-A2A-Notification-Token"),
            ),
        ]
        | None
    ) = None


class HookRoutes:
    def __init__(self, services: Services) -> None:
        self._hooks = services.push_notifications
        self._limits = services.limits

    async def receive_push(self, request: Request, given: PushNotificationParameters) -> Response:
        """
        Receive a push notification from an agent.

        The body is ignored: Trunkline polls the agent for the state of the task. A repeated notification, or one for a
        task that has ended, has no effect.
        """
        result = await self._hooks.receive(given.token, _notification_token(request, given))
        if result == "refused":
            return problem(
                request,
                KINDS[NotFound],
                "No task matches the URL and the token of this notification.",
                "Use the URL and the token of the task's push configuration unchanged.",
            )
        # Read and dropped, because an agent treats a connection that closes during its request as a failure.
        await read_body(request, self._limits.max_body_bytes)
        return Response(status_code=204)


def _notification_token(request: Request, given: PushNotificationParameters) -> str:
    if given.notification_token is not None:
        return given.notification_token
    return (find_header(request.scope["headers"], _OTHER_TOKEN_HEADER) or b"").decode("latin-1")


def hook_operations(services: Services) -> list[Operation]:
    return [
        operation(
            f"POST {PUSH_PATH}/{{token}}",
            HookRoutes(services).receive_push,
            PushNotificationParameters,
            name="ring_for_task",
            tag="hooks",
            body=Body({"description": "The agent's notification. Its content is ignored."}, required=False),
            responses={204: ResponseSpec("The notification was accepted.")},
            problems=(404, 413),
        )
    ]  # fmt: skip
