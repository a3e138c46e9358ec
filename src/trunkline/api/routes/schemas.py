"""Saved JSON Schemas: save, list, show and delete them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_object, read_body
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.parameters import Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.workflows import SchemaPage, SchemaResource, schema_resource
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.services.schemas import SCHEMA_NAME_PATTERN

SCHEMAS = "/api/v1/schemas"


class SchemaParameters(Parameters, frozen=True, kw_only=True):
    schema: Annotated[str, msgspec.Meta(description="The schema's name.")]


class NewSchemaParameters(Parameters, frozen=True, kw_only=True):
    # The pattern only documents the schema: the service validates, with a better message.
    schema: Annotated[
        str,
        msgspec.Meta(description="The schema's name.", extra_json_schema={"pattern": SCHEMA_NAME_PATTERN}),
    ]


class SchemaRoutes:
    def __init__(self, services: Services) -> None:
        self._schemas = services.schemas
        self._limits = services.limits

    async def list(self, _request: Request, given: TextPageParameters) -> Response:
        """List saved JSON Schemas, sorted by name."""
        found = await self._schemas.list(limit=given.limit + 1, after=decode_cursor(given.cursor))
        schemas, next_cursor = page(found, given.limit, lambda saved: saved.name)
        return json_response(page_of([schema_resource(each, whole=False) for each in schemas], next_cursor))

    async def get(self, _request: Request, given: SchemaParameters) -> Response:
        """Get a saved JSON Schema."""
        return json_response(schema_resource(await self._schemas.get(given.schema)))

    async def save(self, request: Request, given: NewSchemaParameters) -> Response:
        """Save a JSON Schema. Workflows that are saved afterwards use it. Saved workflows keep the earlier one."""
        document = decode_object(await read_body(request, self._limits.max_body_bytes))
        saved, changed = await self._schemas.save(given.schema, document)
        is_new = changed and saved.version == 1
        return json_response(schema_resource(saved), 201 if is_new else 200)

    async def delete(self, _request: Request, given: SchemaParameters) -> Response:
        """Delete a saved JSON Schema. Saved workflows keep their copies."""
        await self._schemas.delete(given.schema)
        return Response(status_code=204)


def schema_operations(services: Services) -> list[Operation]:
    routes = SchemaRoutes(services)
    return [
        operation(
            f"GET {SCHEMAS}",
            routes.list,
            TextPageParameters,
            name="list_schemas",
            tag="schemas",
            responses={200: ResponseSpec("A page of schemas.", SchemaPage)},
            problems=(422,),
        ),
        operation(
            f"GET {SCHEMAS}/{{schema}}",
            routes.get,
            SchemaParameters,
            name="get_schema",
            tag="schemas",
            responses={200: ResponseSpec("The schema.", SchemaResource)},
            problems=(404,),
        ),
        operation(
            f"PUT {SCHEMAS}/{{schema}}",
            routes.save,
            NewSchemaParameters,
            name="save_schema",
            tag="schemas",
            body=Body({"type": "object", "description": "The JSON Schema."}),
            responses={
                200: ResponseSpec("The changed schema, or the same one.", SchemaResource),
                201: ResponseSpec("The new schema.", SchemaResource),
            },
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"DELETE {SCHEMAS}/{{schema}}",
            routes.delete,
            SchemaParameters,
            name="delete_schema",
            tag="schemas",
            responses={204: ResponseSpec("The schema was deleted.")},
            problems=(404,),
        ),
    ]
