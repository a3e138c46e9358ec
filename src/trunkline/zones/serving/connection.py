"""One connection to a zone: also what is not even read as a request is answered with a JSON-RPC response."""

from __future__ import annotations

import asyncio
from typing import cast

from trunkline.serving.connection import HttpConnection, HttpRefusal
from trunkline.serving.write_coalescing import CoalescingTransport
from trunkline.zones.jsonrpc import invalid_request_reply as refused


class ZoneConnection(HttpConnection):
    invalid_http_fix = "Send HTTP/1.1: POST with a JSON-RPC request as the body."

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as the server has it
        # All that the server needs of a transport.
        super().connection_made(cast("asyncio.Transport", CoalescingTransport(transport, self.loop)))

    def refusal_response(self, refusal: HttpRefusal) -> bytes:
        reply = refused(refusal.status, f"{refusal.detail} {refusal.fix}")
        head = (
            f"HTTP/1.1 {reply.status} {refusal.status.phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(reply.body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii") + reply.body
