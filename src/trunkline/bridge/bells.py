"""Where an agent may ring for a task, kept out of what people read: whoever knew it could ring too."""

from __future__ import annotations

from trunkline.protocols import PushTarget
from trunkline.telemetry.telling import REDACTED

_HIDDEN = REDACTED.encode()


def redact_push_target(body: bytes, bell: PushTarget | None) -> bytes:
    if bell is None:
        return body
    for secret in (bell.url.rpartition("/")[2], bell.token):
        body = body.replace(secret.encode(), _HIDDEN)
    return body
