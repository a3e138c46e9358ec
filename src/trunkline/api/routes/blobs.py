"""Files of agents that are too long for a step's output."""

from __future__ import annotations

import shlex
from typing import Annotated

from fastapi import FastAPI, Path
from starlette.responses import Response

from trunkline.api.operations import add_operation, answer, problems
from trunkline.api.routes.runs import RUNS, RunPath
from trunkline.api.services import Services
from trunkline.errors import NotFound
from trunkline.ids import RunId

BlobPath = Annotated[str, Path(description="The file's id, as the step's output names it.")]
# Never what the agent says it is: a browser would show it as a page of ours.
_BYTES = "application/octet-stream"
_AS_A_FILE = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
_CONTENT = {_BYTES: {"schema": {"type": "string", "format": "binary"}}}


class BlobRoutes:
    def __init__(self, services: Services) -> None:
        self._blobs = services.blobs

    async def get(self, run: RunPath, blob: BlobPath) -> Response:
        """A file that an agent has answered with, or that was sent to one."""
        content = None if self._blobs is None else await self._blobs.get(RunId(run), blob)
        if content is None:
            command = shlex.join(["trunkline", "runs", "show", run, "--json"])
            raise NotFound(
                f"Run {run} has no file {blob}.",
                fix=f"See the references in its outputs: {command}",
                fix_command=command,
            )
        return Response(content, media_type=_BYTES, headers=_AS_A_FILE)


def add_blob_routes(app: FastAPI, services: Services) -> None:
    add_operation(
        app, f"GET {RUNS}/{{run}}/blobs/{{blob}}", BlobRoutes(services).get, name="get_run_file", tag="runs",
        responses={200: answer(None, "The file's bytes.", content=_CONTENT), **problems(404)},
    )  # fmt: skip
