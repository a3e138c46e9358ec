"""Named secrets: set, list and remove them. Values are never returned."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.parameters import Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.secrets import SecretPage, SecretResource, SecretValue, secret_resource
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Finding, Invalid
from trunkline.workflow import SECRET_NAME_PATTERN

SECRETS = "/api/v1/secrets"
# Error messages must not repeat the body, which may contain a part of the value.
_EXPECTED = 'Send {"value": "…"} and nothing else.'


class SecretParameters(Parameters, frozen=True, kw_only=True):
    secret: Annotated[str, msgspec.Meta(description="The secret's name.")]


class NewSecretParameters(Parameters, frozen=True, kw_only=True):
    # The pattern only documents the schema: the service validates, with a better message.
    secret: Annotated[
        str,
        msgspec.Meta(description="The secret's name.", extra_json_schema={"pattern": SECRET_NAME_PATTERN}),
    ]


class SecretRoutes:
    def __init__(self, services: Services) -> None:
        self._secrets = services.secrets
        self._limits = services.limits

    async def list(self, _request: Request, given: TextPageParameters) -> Response:
        """List secrets, sorted by name. Values are never returned."""
        found = await self._secrets.list(limit=given.limit + 1, after=decode_cursor(given.cursor))
        secrets, next_cursor = page(found, given.limit, lambda secret: secret.name)
        return json_response(page_of([secret_resource(secret) for secret in secrets], next_cursor))

    async def set(self, request: Request, given: NewSecretParameters) -> Response:
        """Create or change a secret. Running workflows use the new value within two seconds."""
        document = decode_object(await read_body(request, self._limits.max_body_bytes))
        value = document.get("value")
        if document.keys() != {"value"} or not isinstance(value, str):
            raise Invalid(
                "The body must be an object with the string 'value' as its only field.",
                findings=[Finding(path="value", message="must be a string and the only field")],
                fix=_EXPECTED,
            )
        kept = await self._secrets.set(given.secret, value)
        return json_response(secret_resource(kept), 201 if kept.version == 1 else 200)

    async def remove(self, _request: Request, given: SecretParameters) -> Response:
        """Remove a secret. Steps that need it fail before they call their agent."""
        await self._secrets.remove(given.secret)
        return Response(status_code=204)


def secret_operations(services: Services) -> list[Operation]:
    routes = SecretRoutes(services)
    return [
        operation(
            f"GET {SECRETS}",
            routes.list,
            TextPageParameters,
            name="list_secrets",
            tag="secrets",
            responses={200: ResponseSpec("A page of secrets.", SecretPage)},
            problems=(422,),
        ),
        operation(
            f"PUT {SECRETS}/{{secret}}",
            routes.set,
            NewSecretParameters,
            name="set_secret",
            tag="secrets",
            body=Body(SecretValue),
            responses={
                200: ResponseSpec("The changed secret.", SecretResource),
                201: ResponseSpec("The new secret.", SecretResource),
            },
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"DELETE {SECRETS}/{{secret}}",
            routes.remove,
            SecretParameters,
            name="remove_secret",
            tag="secrets",
            responses={204: ResponseSpec("The secret was removed.")},
            problems=(404,),
        ),
    ]
