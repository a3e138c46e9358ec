"""Workflows: save a definition, check one, read its versions and its graph."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import decode_json, read_body
from trunkline.api.operations import (
    JSON,
    LOCATION,
    WORKFLOW_DEFINITION,
    add_operation,
    answer,
    body,
    problems,
    ref,
)
from trunkline.api.paging import DEFAULT_LIMIT, Limit, NumberCursor, TextCursor, decode_cursor, page
from trunkline.api.parameters import MAX_VERSION
from trunkline.api.services import Services
from trunkline.api.workflow_views import (
    graph_json,
    saved_workflow_json,
    validation_json,
    workflow_json,
    workflows_json,
)
from trunkline.jsontypes import encode
from trunkline.workflow import workflow_json_schema

WORKFLOWS = "/api/v1/workflows"
# Beside the workflows and not below them: there, each would take a name away from workflows.
VALIDATION = "/api/v1/workflow-validation"
SCHEMA = "/api/v1/workflow-schema"
MAX_NAME = 255
MAX_LAST_RUNS = 20
YAML_TYPES = ("application/yaml", "text/yaml", "application/x-yaml")
WorkflowPath = Annotated[str, Path(description="The workflow's name or id.")]
VersionPath = Annotated[int, Path(ge=1, le=MAX_VERSION, description="The number of the version.")]
Search = Annotated[
    str | None,
    Query(max_length=MAX_NAME, description="Only names that have this in them, in capitals or not."),
]
LastRuns = Annotated[
    int, Query(ge=0, le=MAX_LAST_RUNS, description="With so many of the last runs of each, newest first.")
]
VersionQuery = Annotated[
    int | None, Query(ge=1, le=MAX_VERSION, description="The number of the version; left out: the latest.")
]


class WorkflowRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._workflows = services.workflows

    async def save(self, request: Request) -> Response:
        """
        Saves a definition, written as YAML or JSON.

        Content that has not changed gives the version that exists; everything else is a new version.
        """
        version, created, warnings = await self._workflows.save(await self._definition(request), "body")
        return Response(
            saved_workflow_json(version, warnings),
            201 if created else 200,
            {"Location": f"{WORKFLOWS}/{quote(version.name, safe='')}/versions/{version.version}"},
            media_type=JSON,
        )

    async def validate(self, request: Request) -> Response:
        """
        Checks a definition, written as YAML or JSON, as saving it would; nothing is saved.

        The answer has every finding with its place in the text, for editors, and the graph once there is none.
        """
        checked = await self._workflows.check(await self._definition(request))
        return Response(validation_json(checked), media_type=JSON)

    async def _definition(self, request: Request) -> bytes:
        content = await read_body(request, self._services.limits.max_body_bytes)
        if request.headers.get("content-type", "").startswith(JSON):
            # Whoever says that it is JSON is told where it is broken, not what YAML would make of it.
            decode_json(content)
        return content

    async def schema(self) -> Response:
        """The JSON Schema of the workflow language, for editors."""
        return Response(encode(workflow_json_schema()), media_type=JSON)

    async def list(
        self,
        limit: Limit = DEFAULT_LIMIT,
        cursor: TextCursor = None,
        q: Search = None,
        last_runs: LastRuns = 0,
    ) -> Response:
        """The latest version of every workflow, by name."""
        found = await self._workflows.list(limit=limit + 1, after=decode_cursor(cursor), search=q)
        versions, next_cursor = page(found, limit, lambda version: version.name)
        runs = await self._workflows.last_runs(versions, last_runs) if last_runs else None
        return Response(workflows_json(versions, next_cursor, runs), media_type=JSON)

    async def get(self, workflow: WorkflowPath) -> Response:
        """The latest version."""
        return Response(workflow_json(await self._workflows.get(workflow)), media_type=JSON)

    async def graph(self, workflow: WorkflowPath, version: VersionQuery = None) -> Response:
        """The steps of a version, what each waits for and why."""
        saved = await self._workflows.get(workflow, version)
        compiled = await self._workflows.compiled(saved.workflow_id, saved.version)
        return Response(graph_json(compiled, saved.version), media_type=JSON)

    async def versions(
        self, workflow: WorkflowPath, limit: Limit = DEFAULT_LIMIT, cursor: NumberCursor = None
    ) -> Response:
        """All versions, newest first."""
        found = await self._workflows.versions(
            workflow, limit=limit + 1, before=None if cursor is None else int(cursor)
        )
        versions, next_cursor = page(found, limit, lambda version: version.version)
        return Response(workflows_json(versions, next_cursor), media_type=JSON)

    async def get_version(self, workflow: WorkflowPath, version: VersionPath) -> Response:
        """One version."""
        return Response(workflow_json(await self._workflows.get(workflow, version)), media_type=JSON)


def add_workflow_routes(app: FastAPI, services: Services) -> None:
    routes = WorkflowRoutes(services)
    add_operation(
        app, f"POST {WORKFLOWS}", routes.save, name="save_workflow", tag="workflows",
        extra=body(ref(WORKFLOW_DEFINITION), media_types=(JSON, *YAML_TYPES)),
        responses={
            200: answer("SavedWorkflow", "The version that has this content already.", headers=LOCATION),
            201: answer("SavedWorkflow", "The new version.", headers=LOCATION),
            **problems(400, 413, 422),
        },
    )  # fmt: skip
    add_operation(
        app, f"GET {WORKFLOWS}", routes.list, name="list_workflows", tag="workflows",
        responses={200: answer("WorkflowPage", "A page of workflows."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {WORKFLOWS}/{{workflow}}", routes.get, name="get_workflow", tag="workflows",
        responses={200: answer("Workflow", "The latest version."), **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"GET {WORKFLOWS}/{{workflow}}/graph", routes.graph, name="get_workflow_graph", tag="workflows",
        responses={200: answer("WorkflowGraph", "The graph."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {WORKFLOWS}/{{workflow}}/versions", routes.versions, name="list_workflow_versions",
        tag="workflows", responses={200: answer("WorkflowPage", "A page of versions."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {WORKFLOWS}/{{workflow}}/versions/{{version}}", routes.get_version,
        name="get_workflow_version", tag="workflows",
        responses={200: answer("Workflow", "The version."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"POST {VALIDATION}", routes.validate, name="validate_workflow", tag="workflows",
        # Any text, or none: what it should have been is the answer.
        extra=body({}, required=False, media_types=(*YAML_TYPES, JSON)),
        responses={200: answer("WorkflowValidation", "What saving it would say."), **problems(400, 413)},
    )  # fmt: skip
    add_operation(
        app, f"GET {SCHEMA}", routes.schema, name="get_workflow_schema", tag="workflows",
        responses={
            200: answer(None, "A JSON Schema.", content={JSON: {"schema": {"type": "object"}}}),
            **problems(),
        },
    )  # fmt: skip
