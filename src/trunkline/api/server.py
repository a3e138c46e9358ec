"""The HTTP server around the API. A request that cannot be read is answered with a problem, like every other error."""

from __future__ import annotations

import socket
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp

from trunkline.api.correlation_ids import choose_correlation_id
from trunkline.api.problems import Kind
from trunkline.api.problems import refusal as refusal_text
from trunkline.serving import ConnectionLimits, HttpConnection, base_url, listen
from trunkline.serving import serving as serving_with
from trunkline.serving.connection import HttpRefusal
from trunkline.serving.connection_limits import DEFAULT_LIMITS
from trunkline.serving.tls import ServerTls

__all__ = ["ApiConnection", "base_url", "listen", "serving"]


class ApiConnection(HttpConnection):
    invalid_http_fix = "Send an HTTP/1.1 request with a method that /openapi.json lists."

    def refusal_response(self, refusal: HttpRefusal) -> bytes:
        kind = Kind(int(refusal.status), refusal.name, refusal.status.phrase)
        return refusal_text(kind, refusal.detail, refusal.fix, choose_correlation_id(()))


def serving(
    app: ASGIApp,
    listener: socket.socket,
    connection: type[HttpConnection] = ApiConnection,
    *,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    tls: ServerTls | None = None,
) -> AbstractAsyncContextManager[None]:
    """Serves while the block runs. At its end, no request is accepted any more, and all requests have finished."""
    return serving_with(app, listener, connection, limits=limits, tls=tls)
