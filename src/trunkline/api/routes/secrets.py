"""Named secrets: set, list, remove. A value goes in and never comes out."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body
from trunkline.api.operations import JSON, add_operation, answer, body, problems, ref
from trunkline.api.paging import DEFAULT_LIMIT, Limit, TextCursor, decode_cursor, page
from trunkline.api.services import Services
from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import encode
from trunkline.stores.port.credentials import Secret
from trunkline.workflow import SECRET_NAME_PATTERN

SECRETS = "/api/v1/secrets"
SecretPath = Annotated[str, Path(description="The secret's name.")]
# Described here; the service says in words what is wrong with a name.
NewSecretPath = Annotated[
    str, Path(description="The secret's name.", json_schema_extra={"pattern": SECRET_NAME_PATTERN})
]
# Whatever else the body may say is not looked at, lest a message repeat a part of the value.
_EXPECTED = 'Send {"value": "…"} and nothing else.'


class _Shown(msgspec.Struct):
    name: str
    version: int
    created_at: str
    updated_at: str


class SecretRoutes:
    def __init__(self, services: Services) -> None:
        self._secrets = services.secrets
        self._limits = services.limits

    async def list(self, limit: Limit = DEFAULT_LIMIT, cursor: TextCursor = None) -> Response:
        """Secrets by name: when they were set, never what they hold."""
        found = await self._secrets.list(limit=limit + 1, after=decode_cursor(cursor))
        secrets, next_cursor = page(found, limit, lambda secret: secret.name)
        return Response(page_json([_shown(secret) for secret in secrets], next_cursor), media_type=JSON)

    async def set(self, request: Request, secret: NewSecretPath) -> Response:
        """Sets a secret, or changes it; running workflows use the new value within two seconds."""
        document = decode_object(await read_body(request, self._limits.max_body_bytes))
        value = document.get("value")
        if document.keys() != {"value"} or not isinstance(value, str):
            raise Invalid(
                "The body must be an object with 'value', a text, and nothing else.",
                findings=[Finding(path="value", message="must be a text, and stand alone")],
                fix=_EXPECTED,
            )
        kept = await self._secrets.set(secret, value)
        return Response(encode(_shown(kept)), 201 if kept.version == 1 else 200, media_type=JSON)

    async def remove(self, secret: SecretPath) -> Response:
        """Removes a secret; steps that need it fail before anything is sent."""
        await self._secrets.remove(secret)
        return Response(status_code=204)


def _shown(secret: Secret) -> _Shown:
    return _Shown(secret.name, secret.version, rfc3339(secret.created_at), rfc3339(secret.updated_at))


def add_secret_routes(app: FastAPI, services: Services) -> None:
    routes = SecretRoutes(services)
    add_operation(
        app, f"GET {SECRETS}", routes.list, name="list_secrets", tag="secrets",
        responses={200: answer("SecretPage", "A page of secrets."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"PUT {SECRETS}/{{secret}}", routes.set, name="set_secret", tag="secrets",
        extra=body(ref("SecretValue")),
        responses={
            200: answer("Secret", "The secret, changed."),
            201: answer("Secret", "The secret, new."),
            **problems(400, 409, 413, 422),
        },
    )  # fmt: skip
    add_operation(
        app, f"DELETE {SECRETS}/{{secret}}", routes.remove, name="remove_secret", tag="secrets",
        responses={204: answer(None, "The secret is gone."), **problems(404)},
    )  # fmt: skip
