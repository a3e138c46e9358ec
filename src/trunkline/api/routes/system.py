"""Whether the process lives, whether it can take work, and what it counts."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.operations import add_operation, answer, problems
from trunkline.api.problems import KINDS, problem
from trunkline.api.services import OK, Probes
from trunkline.errors import Unavailable
from trunkline.jsontypes import encode

METRICS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_ALIVE = encode({"status": OK})


class SystemRoutes:
    def __init__(self, probes: Probes) -> None:
        self._probes = probes

    async def livez(self) -> Response:
        """Says that the process answers; asks nobody else."""
        return Response(_ALIVE, media_type="application/json")

    async def readyz(self, request: Request) -> Response:
        """Says whether work can be taken: every dependency is asked."""
        dependencies = await self._probes.readiness()
        missing = {name: reason for name, reason in dependencies.items() if reason != OK}
        if missing:
            # Not an error of ours: being asked while a dependency is away is what this address is for.
            return problem(
                request,
                KINDS[Unavailable],
                "; ".join(f"{name}: {reason}" for name, reason in sorted(missing.items())),
                "Bring back what is named; Trunkline goes on by itself as soon as it answers.",
            )
        body = {"status": OK, "dependencies": dependencies, "warnings": self._probes.warnings()}
        return Response(encode(body), media_type="application/json")

    async def metrics(self) -> Response:
        """Counters, gauges and histograms in Prometheus' text format."""
        return Response(await self._probes.metrics(), headers={"Content-Type": METRICS_TEXT})


def add_system_routes(app: FastAPI, probes: Probes) -> None:
    routes = SystemRoutes(probes)
    add_operation(
        app, "GET /livez", routes.livez, name="livez", tag="system",
        responses={200: answer("Liveness", "The process lives."), **problems()},
    )  # fmt: skip
    add_operation(
        app, "GET /readyz", routes.readyz, name="readyz", tag="system",
        responses={200: answer("Readiness", "Work can be taken."), **problems()},
    )  # fmt: skip
    add_operation(
        app, "GET /metrics", routes.metrics, name="metrics", tag="system",
        responses={
            200: answer(None, "The metrics.", content={"text/plain": {"schema": {"type": "string"}}}),
            **problems(),
        },
    )  # fmt: skip
