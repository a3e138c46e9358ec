"""Reads the body of a request: JSON, up to a size limit."""

from __future__ import annotations

from fastapi import HTTPException, Request

MAX_BODY_BYTES = 1_000_000


async def read_body(request: Request) -> bytes:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HTTPException(415, "Content-Type must be application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, f"the body has more than {MAX_BODY_BYTES} bytes")
    return bytes(body)
