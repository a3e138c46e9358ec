"""Workflows: save and validate definitions, and read versions and graphs."""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_json, decode_object, read_body
from trunkline.api.paging import NumberPageParameters, TextPageParameters, decode_cursor, page_within
from trunkline.api.parameters import MAX_VERSION, Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.workflows import (
    WORKFLOW_DEFINITION,
    PublishRequest,
    SavedWorkflow,
    WorkflowGraph,
    WorkflowPage,
    WorkflowResource,
    WorkflowValidation,
    saved_workflow,
    workflow_graph,
    workflow_item,
    workflow_resource,
    workflow_validation,
)
from trunkline.api.routing import JSON, LOCATION, Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.stores.base import WorkflowVersion
from trunkline.workflow import workflow_json_schema

WORKFLOWS = "/api/v1/workflows"
# Not below /workflows, where each would reserve a workflow name.
VALIDATION = "/api/v1/workflow-validation"
SCHEMA = "/api/v1/workflow-schema"
MAX_NAME = 255
MAX_LAST_RUNS = 20
YAML_TYPES = ("application/yaml", "text/yaml", "application/x-yaml")
WorkflowNameParameter = Annotated[str, Meta(description="The workflow's name or id.")]


class WorkflowParameters(Parameters, frozen=True, kw_only=True):
    workflow: WorkflowNameParameter


class ListWorkflowsParameters(TextPageParameters, frozen=True, kw_only=True):
    q: (
        Annotated[
            str,
            Meta(
                max_length=MAX_NAME,
                description="Return only workflows whose name contains this text, ignoring case.",
            ),
        ]
        | None
    ) = None
    last_runs: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_LAST_RUNS,
            description="Include this many of the last runs of each workflow, newest first.",
        ),
    ] = 0


class GraphParameters(Parameters, frozen=True, kw_only=True):
    workflow: WorkflowNameParameter
    version: (
        Annotated[int, Meta(ge=1, le=MAX_VERSION, description="The version number. Defaults to the latest.")]
        | None
    ) = None


class ListVersionsParameters(NumberPageParameters, frozen=True, kw_only=True):
    workflow: WorkflowNameParameter


class VersionParameters(Parameters, frozen=True, kw_only=True):
    workflow: WorkflowNameParameter
    version: Annotated[int, Meta(ge=1, le=MAX_VERSION, description="The version number.")]


class WorkflowRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._workflows = services.workflows

    async def save(self, request: Request) -> Response:
        """
        Save a workflow definition, as YAML or JSON.

        If the content has changed, this creates a new version. Otherwise, it returns the existing one.
        """
        version, created, warnings = await self._workflows.save(await self._definition(request), "body")
        return json_response(
            saved_workflow(version, warnings),
            201 if created else 200,
            {"Location": f"{WORKFLOWS}/{quote(version.name, safe='')}/versions/{version.version}"},
        )

    async def publish(self, request: Request, given: WorkflowParameters) -> Response:
        """
        Publish a workflow over A2A, or stop publishing it.

        Saves the latest definition as a new version with another value of `publish`. The rest of its text stays as it
        is. If the value is the same, this returns the existing version.
        """
        content = await read_body(request, self._services.limits.max_body_bytes)
        wanted = convert(decode_object(content), PublishRequest).publish
        version, created, warnings = await self._workflows.set_publish(given.workflow, wanted or None)
        return json_response(
            saved_workflow(version, warnings),
            201 if created else 200,
            {"Location": f"{WORKFLOWS}/{quote(version.name, safe='')}/versions/{version.version}"},
        )

    async def validate(self, request: Request) -> Response:
        """
        Validate a workflow definition, as YAML or JSON, without saving it.

        The response lists all findings with their positions in the text. If there are no errors, it includes the graph.
        """
        checked = await self._workflows.check(await self._definition(request))
        # In a thread: the graph of a workflow of thousands of steps takes long.
        return await asyncio.to_thread(lambda: json_response(workflow_validation(checked)))

    async def _definition(self, request: Request) -> bytes:
        content = await read_body(request, self._services.limits.max_body_bytes)
        if request.headers.get("content-type", "").startswith(JSON):
            # A caller that sends JSON gets JSON syntax errors, not those of the YAML parser.
            decode_json(content)
        return content

    async def schema(self, _request: Request) -> Response:
        """Get the JSON Schema of the workflow language, for editors."""
        return json_response(workflow_json_schema())

    async def list(self, _request: Request, given: ListWorkflowsParameters) -> Response:
        """List workflows in their latest version, sorted by name."""
        versions, next_cursor = await page_within(
            lambda after, limit: self._workflows.list(limit=limit, after=after, search=given.q),
            decode_cursor(given.cursor),
            given.limit,
            key=lambda version: version.name,
            size_bytes=_size_bytes,
        )
        if not given.last_runs:
            return json_response(page_of([workflow_item(each) for each in versions], next_cursor))
        runs = await self._workflows.last_runs(versions, given.last_runs)
        items = [workflow_item(each, runs.get(each.name, ())) for each in versions]
        return json_response(page_of(items, next_cursor))

    async def get(self, _request: Request, given: WorkflowParameters) -> Response:
        """Get the latest version of a workflow."""
        return json_response(workflow_resource(await self._workflows.get(given.workflow)))

    async def graph(self, _request: Request, given: GraphParameters) -> Response:
        """Get the graph of a workflow version: its steps and their dependencies."""
        saved = await self._workflows.get(given.workflow, given.version)
        compiled = await self._workflows.compiled(saved.workflow_id, saved.version)
        return await asyncio.to_thread(lambda: json_response(workflow_graph(compiled, saved.version)))

    async def versions(self, _request: Request, given: ListVersionsParameters) -> Response:
        """List the versions of a workflow, newest first."""
        versions, next_cursor = await page_within(
            lambda before, limit: self._workflows.versions(given.workflow, limit=limit, before=before),
            None if given.cursor is None else int(given.cursor),
            given.limit,
            key=lambda version: version.version,
            size_bytes=_size_bytes,
        )
        return json_response(page_of([workflow_item(each) for each in versions], next_cursor))

    async def get_version(self, _request: Request, given: VersionParameters) -> Response:
        """Get one version of a workflow."""
        return json_response(workflow_resource(await self._workflows.get(given.workflow, given.version)))


def _size_bytes(version: WorkflowVersion) -> int:
    return len(version.canonical) + len(version.source)


def workflow_operations(services: Services) -> list[Operation]:
    routes = WorkflowRoutes(services)
    one = f"{WORKFLOWS}/{{workflow}}"
    definition = Body(
        {"$ref": f"#/components/schemas/{WORKFLOW_DEFINITION}"}, media_types=(JSON, *YAML_TYPES)
    )
    # Any body is accepted, even an empty one: the response says what is wrong with it.
    any_text = Body({}, required=False, media_types=(*YAML_TYPES, JSON))
    return [
        operation(
            f"POST {WORKFLOWS}", routes.save, name="save_workflow", tag="workflows", body=definition,
            responses={
                200: ResponseSpec("The existing version with the same content.", SavedWorkflow, headers=LOCATION),
                201: ResponseSpec("The new version.", SavedWorkflow, headers=LOCATION),
            },
            problems=(400, 413, 422),
        ),
        operation(
            f"GET {WORKFLOWS}", routes.list, ListWorkflowsParameters, name="list_workflows", tag="workflows",
            responses={200: ResponseSpec("A page of workflows.", WorkflowPage)}, problems=(422,),
        ),
        operation(
            f"GET {one}", routes.get, WorkflowParameters, name="get_workflow", tag="workflows",
            responses={200: ResponseSpec("The latest version.", WorkflowResource)}, problems=(404,),
        ),
        operation(
            f"PUT {one}/publish", routes.publish, WorkflowParameters, name="publish_workflow", tag="workflows",
            body=Body(PublishRequest),
            responses={
                200: ResponseSpec("The existing version with the same value.", SavedWorkflow, headers=LOCATION),
                201: ResponseSpec("The new version.", SavedWorkflow, headers=LOCATION),
            },
            problems=(400, 404, 409, 413, 422),
        ),
        operation(
            f"GET {one}/graph", routes.graph, GraphParameters, name="get_workflow_graph", tag="workflows",
            responses={200: ResponseSpec("The graph.", WorkflowGraph)}, problems=(404, 422),
        ),
        operation(
            f"GET {one}/versions", routes.versions, ListVersionsParameters, name="list_workflow_versions",
            tag="workflows", responses={200: ResponseSpec("A page of versions.", WorkflowPage)}, problems=(404, 422),
        ),
        operation(
            f"GET {one}/versions/{{version}}", routes.get_version, VersionParameters,
            name="get_workflow_version", tag="workflows",
            responses={200: ResponseSpec("The version.", WorkflowResource)}, problems=(404, 422),
        ),
        operation(
            f"POST {VALIDATION}", routes.validate, name="validate_workflow", tag="workflows", body=any_text,
            responses={200: ResponseSpec("The findings.", WorkflowValidation)}, problems=(400, 413),
        ),
        operation(
            f"GET {SCHEMA}", routes.schema, name="get_workflow_schema", tag="workflows",
            responses={200: ResponseSpec("The JSON Schema.", content={JSON: {"type": "object"}})},
        ),
    ]  # fmt: skip
