"""The documents that describe the interfaces: OpenAPI for REST, AsyncAPI for the Kafka topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.documents.asyncapi import build_asyncapi
from trunkline.api.routing import JSON, Operation, ResponseSpec, operation
from trunkline.api.services import Services
from trunkline.jsontypes import JsonObject, encode

OPENAPI = "/openapi.json"
ASYNCAPI = "/asyncapi.json"


class DocumentRoutes:
    """Builds each document at the first request for it."""

    def __init__(self, services: Services, described: Sequence[Operation]) -> None:
        self._topics = services.topics
        self._described = described

    async def openapi(self, _request: Request) -> Response:
        """Get the OpenAPI document of the REST interface."""
        return Response(self._openapi, media_type=JSON)

    async def asyncapi(self, _request: Request) -> Response:
        """Get the AsyncAPI document of the Kafka topics."""
        return Response(self._asyncapi, media_type=JSON)

    @cached_property
    def _openapi(self) -> bytes:
        # Imported here because it builds pydantic models, which no other response needs.
        from trunkline.api.documents.openapi import build_openapi  # noqa: PLC0415

        return encode(build_openapi(self._described))

    @cached_property
    def _asyncapi(self) -> bytes:
        return encode(build_asyncapi(self._topics))


def document_operations(services: Services, described: Sequence[Operation]) -> list[Operation]:
    """`described` are the operations in the OpenAPI document, which does not list the documents themselves."""
    routes = DocumentRoutes(services, described)
    document: dict[str, JsonObject] = {JSON: {"type": "object"}}
    return [
        operation(
            f"GET {OPENAPI}", routes.openapi, name="get_openapi", tag="system",
            responses={200: ResponseSpec("The OpenAPI document.", content=document)},
        ),
        operation(
            f"GET {ASYNCAPI}", routes.asyncapi, name="get_asyncapi", tag="system",
            responses={200: ResponseSpec("The AsyncAPI document.", content=document)},
        ),
    ]  # fmt: skip
