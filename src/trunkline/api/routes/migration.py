"""Agents that move: the plan, what was done, and what is to be done next."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from trunkline.agents.migration.comparison import ComparisonVerdict
from trunkline.agents.migration.transitions import LimitChanges
from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.check_views import check_json
from trunkline.api.middleware.auth import caller_of
from trunkline.api.migration_views import (
    agent_events_json,
    change_json,
    changes_json,
    comparisons_json,
    entries_json,
    outcome_json,
    status_json,
)
from trunkline.api.operations import JSON, add_operation, answer, body, problems, ref
from trunkline.api.paging import DEFAULT_LIMIT, Limit, NumberCursor, TextCursor, decode_cursor, page
from trunkline.api.routes.agents import AgentPath
from trunkline.api.services import Services
from trunkline.services.migration.repository import ChangeReason, change_reason
from trunkline.services.migration.targets import RequestedTarget

MIGRATION = "/api/v1/migration"


class _Reason(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    why: str = ""
    who: str | None = None


class _Trial(_Reason, forbid_unknown_fields=True, kw_only=True):
    percent: float
    target: RequestedTarget = RequestedTarget()
    limits: LimitChanges = LimitChanges()


class _Ready(_Reason, forbid_unknown_fields=True, kw_only=True):
    note: str
    target: RequestedTarget | None = None


class _Cutover(_Reason, forbid_unknown_fields=True, kw_only=True):
    force: bool = False


_Form = TypeVar("_Form", bound=_Reason)


class MigrationRoutes:
    def __init__(self, services: Services) -> None:
        self._limits = services.limits
        self._migrations = services.migrations
        self._plan = services.migration_plan

    async def plan(self, limit: Limit = DEFAULT_LIMIT, cursor: TextCursor = None) -> Response:
        """All agents by name: what each speaks and offers, where its migration stands, and what is in its way."""
        found = await self._plan.entries(limit=limit + 1, after=decode_cursor(cursor))
        entries, next_cursor = page(found, limit, lambda entry: entry.agent)
        return Response(entries_json(entries, next_cursor), media_type=JSON)

    async def events(
        self,
        limit: Limit = DEFAULT_LIMIT,
        cursor: NumberCursor = None,
        agent: Annotated[
            str | None, Query(description="Only of this agent, by its name or id; it may be removed.")
        ] = None,
    ) -> Response:
        """What has happened to agents, newest first: who has changed a migration and why, cards, grades."""
        before = None if cursor is None else int(cursor)
        found = await self._plan.events(limit=limit + 1, before=before, name=agent)
        events, next_cursor = page(found, limit, lambda event: event.id)
        return Response(agent_events_json(events, next_cursor), media_type=JSON)

    async def status(self, agent: AgentPath) -> Response:
        """All that is known of one agent's migration."""
        return Response(status_json(await self._plan.status(agent)), media_type=JSON)

    async def comparisons(
        self,
        agent: AgentPath,
        limit: Limit = DEFAULT_LIMIT,
        cursor: TextCursor = None,
        verdict: Annotated[ComparisonVerdict | None, Query(description="Only those with this one.")] = None,
    ) -> Response:
        """What the two sides of a shadowed agent have answered to the same tasks, newest first."""
        found = await self._plan.comparisons(
            agent, limit=limit + 1, before=decode_cursor(cursor), verdict=verdict
        )
        records, next_cursor = page(found, limit, lambda record: record.id)
        return Response(comparisons_json(records, next_cursor), media_type=JSON)

    async def check(self, agent: AgentPath) -> Response:
        """Checks where the agent is to move to, without giving it work, and keeps the report."""
        record, _ = await self._migrations.check(agent)
        return Response(check_json(record), media_type=JSON)

    async def ready(self, request: Request, agent: AgentPath) -> Response:
        """Attests what no program can check; may also name where the agent is to move to."""
        form, reason = await self._asked(request, _Ready)
        return _changed(change_json(await self._migrations.attest(agent, form.note, form.target, reason)))

    async def shadow(self, request: Request, agent: AgentPath) -> Response:
        """Sends the input of some runs beside to the new side, and compares its answers; no run notices."""
        form, reason = await self._asked(request, _Trial)
        change = await self._migrations.shadow(agent, form.target, form.percent, form.limits, reason)
        return _changed(change_json(change))

    async def canary(self, request: Request, agent: AgentPath) -> Response:
        """Lets a share of the runs that begin from now on call the new side, and no other."""
        form, reason = await self._asked(request, _Trial)
        change = await self._migrations.canary(agent, form.target, form.percent, form.limits, reason)
        return _changed(change_json(change))

    async def cutover(self, request: Request, agent: AgentPath) -> Response:
        """Lets all runs that begin from now on call the new side; `errors` of a 409 are all reasons why not."""
        form, reason = await self._asked(request, _Cutover)
        return _changed(change_json(await self._migrations.cut_over(agent, reason, force=form.force)))

    async def cutover_all(self, request: Request) -> Response:
        """
        The cutover of every agent that speaks Simple A2A or is in the middle of a migration: of all, or of none.
        """
        form, reason = await self._asked(request, _Cutover)
        return _changed(changes_json(await self._migrations.cut_over_all(reason, force=form.force)))

    async def rollback(self, request: Request, agent: AgentPath) -> Response:
        """Lets all runs that begin from now on call the old side again."""
        _, reason = await self._asked(request, _Reason)
        return _changed(change_json(await self._migrations.roll_back(agent, reason)))

    async def rollback_all(self, request: Request) -> Response:
        """Rolls back every agent that still has an old side, and names those that have none: `left_alone`."""
        _, reason = await self._asked(request, _Reason)
        return _changed(outcome_json(await self._migrations.roll_back_all(reason)))

    async def finish(self, request: Request, agent: AgentPath) -> Response:
        """Registers the agent as its new side; the old one is given up."""
        _, reason = await self._asked(request, _Reason)
        return _changed(change_json(await self._migrations.finish(agent, reason)))

    async def finish_all(self, request: Request) -> Response:
        """Finishes every migration that has been cut over, and names those that have to wait: `refused`."""
        _, reason = await self._asked(request, _Reason)
        return _changed(outcome_json(await self._migrations.finish_all(reason)))

    async def _asked(self, request: Request, form: type[_Form]) -> tuple[_Form, ChangeReason]:
        sent = await read_body(request, self._limits.max_body_bytes)
        asked = convert(decode_object(sent or b"{}"), form)
        # A key says for sure who it is; without keys it is whoever they say they are.
        return asked, change_reason(caller_of(request.scope) or asked.who, asked.why)


def _changed(content: bytes) -> Response:
    return Response(content, media_type=JSON)


def add_migration_routes(app: FastAPI, services: Services) -> None:
    routes = MigrationRoutes(services)
    one = f"{MIGRATION}/agents/{{agent}}"
    add_operation(
        app, f"GET {MIGRATION}", routes.plan, name="plan_migration", tag="migration",
        responses={200: answer("MigrationPage", "A page of agents."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {MIGRATION}/events", routes.events, name="list_agent_events", tag="migration",
        responses={200: answer("AgentEventPage", "A page of events."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {one}", routes.status, name="get_migration", tag="migration",
        responses={200: answer("MigrationStatus", "The agent's migration."), **problems(404)},
    )  # fmt: skip
    add_operation(
        app, f"GET {one}/comparisons", routes.comparisons, name="list_comparisons", tag="migration",
        responses={200: answer("ComparisonPage", "A page of comparisons."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"POST {one}/check", routes.check, name="check_migration", tag="migration",
        responses={200: answer("CheckReport", "What was found."), **problems(404, 409, 422)},
    )  # fmt: skip
    changed = answer("MigrationChange", "How it stands now; without an `event` it stood so already.")
    for name, endpoint, form, required in (
        ("ready", routes.ready, "ReadyRequest", True),
        ("shadow", routes.shadow, "TrialRequest", True),
        ("canary", routes.canary, "TrialRequest", True),
        ("cutover", routes.cutover, "CutoverRequest", False),
        ("rollback", routes.rollback, "RollbackRequest", True),
        ("finish", routes.finish, "MigrationRequest", False),
    ):
        add_operation(
            app, f"POST {one}/{name}", endpoint, name=f"migration_{name}", tag="migration",
            extra=body(ref(form), required=required),
            responses={200: changed, **problems(400, 404, 409, 413, 422)},
        )  # fmt: skip
    outcome = answer("MigrationOutcome", "The agents that have changed, and those that have not.")
    for name, endpoint, form, required in (
        ("cutover", routes.cutover_all, "CutoverRequest", False),
        ("rollback", routes.rollback_all, "RollbackRequest", True),
        ("finish", routes.finish_all, "MigrationRequest", False),
    ):
        add_operation(
            app, f"POST {MIGRATION}/{name}", endpoint, name=f"migration_{name}_all", tag="migration",
            extra=body(ref(form), required=required),
            responses={200: outcome, **problems(400, 409, 413, 422)},
        )  # fmt: skip
