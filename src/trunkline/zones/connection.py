"""One connection to a zone: also what is not even read as a request is answered with a JSON-RPC response."""

from __future__ import annotations

from trunkline.serving.connection import Connection, Refusal
from trunkline.zones.replies import refusal as refused


class ZoneConnection(Connection):
    fix_of_bad_http = "Send HTTP/1.1: POST with a JSON-RPC request as the body."

    def refusal_text(self, refusal: Refusal) -> bytes:
        reply = refused(refusal.status, f"{refusal.detail} {refusal.fix}")
        head = (
            f"HTTP/1.1 {reply.status} {refusal.status.phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(reply.body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii") + reply.body
