"""
Reads the rest of a request whose answer ends the connection, although the answer is there already.

Closing a connection with unread bytes resets it, and a caller that is still sending never sees why it was
refused. A connection that stays is read on by the server itself. How long a body may take is the connection's business.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class DrainsRequestBody:
    """Wraps an ASGI application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _closes_with_body(scope):
            await self._app(scope, receive, send)
            return
        is_received = False

        async def receive_tracked() -> Message:
            nonlocal is_received
            message = await receive()
            # Of a caller that is gone there is no more, either.
            is_received = not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            if (
                message["type"] == "http.response.body"
                and not message.get("more_body", False)
                and not is_received
            ):
                await send({**message, "more_body": True})
                while not is_received:
                    await receive_tracked()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        await self._app(scope, receive_tracked, answer)


def _closes_with_body(scope: Scope) -> bool:
    """Whether a request with a body asks for that."""
    has_body, ends = False, scope["http_version"] == "1.0"
    for name, value in scope["headers"]:
        if name == b"connection":
            ends = ends or b"close" in value.lower()
        elif name in {b"content-length", b"transfer-encoding"}:
            has_body = has_body or value != b"0"
    return ends and has_body
