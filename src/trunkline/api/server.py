"""The HTTP server around the API, whose refusals are problems."""

from __future__ import annotations

import socket
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp

from trunkline.api.connection import ApiConnection
from trunkline.serving import Connection, base_url, listen
from trunkline.serving import serving as serving_with

__all__ = ["base_url", "listen", "serving"]


def serving(
    app: ASGIApp, listener: socket.socket, connection: type[Connection] = ApiConnection
) -> AbstractAsyncContextManager[None]:
    """Serves while the block runs; at its end no request is taken any more, and those under way have ended."""
    return serving_with(app, listener, connection)
