"""API keys: create, list and revoke them. A key itself is in one response only, the one that creates it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.middleware.auth import key_of
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.parameters import Parameters, instant
from trunkline.api.resources.common import page_of
from trunkline.api.resources.keys import ApiKeyPage, CreatedApiKey, NewApiKey, api_key_resource
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services

KEYS = "/api/v1/keys"


class KeyParameters(Parameters, frozen=True, kw_only=True):
    key: Annotated[str, msgspec.Meta(description="The key's name or id.")]


class KeyRoutes:
    def __init__(self, services: Services) -> None:
        self._keys = services.api_keys
        self._limits = services.limits

    async def list(self, _request: Request, given: TextPageParameters) -> Response:
        """List API keys, oldest first, including revoked ones. The keys themselves are never returned."""
        found = await self._keys.page(limit=given.limit + 1, after=decode_cursor(given.cursor))
        keys, next_cursor = page(found, given.limit, lambda key: key.id)
        return json_response(page_of([api_key_resource(key) for key in keys], next_cursor))

    async def create(self, request: Request) -> Response:
        """
        Create an API key. The response contains the key, which is shown only once.

        To replace a key, create another one, use it everywhere, and revoke the old one. `last_used_at` shows whether
        the old one is still in use.
        """
        body = decode_object(await read_body(request, self._limits.max_body_bytes))
        wanted = convert(body, NewApiKey)
        key, text = await self._keys.create(
            wanted.name,
            wanted.role,
            expires_at=instant(wanted.expires_at),
            publications=wanted.publications,
        )
        created: CreatedApiKey = {**api_key_resource(key), "key": text}
        return json_response(created, 201)

    async def revoke(self, request: Request, given: KeyParameters) -> Response:
        """
        Revoke an API key. It is rejected within two seconds, and stays in the list.

        The key that authenticates the request cannot be revoked by it.
        """
        await self._keys.revoke(given.key, caller=key_of(request.scope))
        return Response(status_code=204)


def key_operations(services: Services) -> list[Operation]:
    routes = KeyRoutes(services)
    return [
        operation(
            f"GET {KEYS}",
            routes.list,
            TextPageParameters,
            name="list_keys",
            tag="keys",
            responses={200: ResponseSpec("A page of API keys.", ApiKeyPage)},
            problems=(422,),
        ),
        operation(
            f"POST {KEYS}",
            routes.create,
            name="create_key",
            tag="keys",
            body=Body(NewApiKey),
            responses={201: ResponseSpec("The new API key.", CreatedApiKey)},
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"DELETE {KEYS}/{{key}}",
            routes.revoke,
            KeyParameters,
            name="revoke_key",
            tag="keys",
            responses={204: ResponseSpec("The API key was revoked.")},
            problems=(404, 409),
        ),
    ]
