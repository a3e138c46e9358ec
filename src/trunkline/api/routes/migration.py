"""Agents that move: the plan, what was done, and what is to be done next."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.agents.migration.comparison import ComparisonVerdict
from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.middleware.auth import caller_of
from trunkline.api.paging import NumberPageParameters, TextPageParameters, decode_cursor, page
from trunkline.api.resources.checks import CheckReport, check_report
from trunkline.api.resources.common import page_of
from trunkline.api.resources.migration import (
    AgentEventPage,
    ComparisonPage,
    CutoverRequest,
    MigrationChange,
    MigrationOutcome,
    MigrationPage,
    MigrationRequest,
    MigrationStatus,
    ReadyRequest,
    RollbackRequest,
    TrialRequest,
    agent_event,
    comparison_resource,
    migration_change,
    migration_entry,
    migration_outcome,
    migration_status,
)
from trunkline.api.routes.agents import AgentParameter, AgentParameters
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.services.migration.repository import (
    BulkChangeResult,
    ChangeReason,
    StageChange,
    change_reason,
)

MIGRATION = "/api/v1/migration"


class ListAgentEventsParameters(NumberPageParameters, frozen=True, kw_only=True):
    agent: (
        Annotated[str, Meta(description="Only of this agent, by its name or id; it may be removed.")] | None
    ) = None


class ListComparisonsParameters(TextPageParameters, frozen=True, kw_only=True):
    agent: AgentParameter
    verdict: Annotated[ComparisonVerdict, Meta(description="Only those with this one.")] | None = None


_Form = TypeVar("_Form", bound=MigrationRequest)


class MigrationRoutes:
    def __init__(self, services: Services) -> None:
        self._limits = services.limits
        self._migrations = services.migrations
        self._plan = services.migration_plan

    async def plan(self, _request: Request, given: TextPageParameters) -> Response:
        """All agents by name: what each speaks and offers, where its migration stands, and what is in its way."""
        found = await self._plan.entries(limit=given.limit + 1, after=decode_cursor(given.cursor))
        entries, next_cursor = page(found, given.limit, lambda entry: entry.agent)
        return json_response(page_of([migration_entry(entry) for entry in entries], next_cursor))

    async def events(self, _request: Request, given: ListAgentEventsParameters) -> Response:
        """What has happened to agents, newest first: who has changed a migration and why, cards, grades."""
        before = None if given.cursor is None else int(given.cursor)
        found = await self._plan.events(limit=given.limit + 1, before=before, name=given.agent)
        events, next_cursor = page(found, given.limit, lambda event: event.id)
        return json_response(page_of([agent_event(event) for event in events], next_cursor))

    async def status(self, _request: Request, given: AgentParameters) -> Response:
        """All that is known of one agent's migration."""
        return json_response(migration_status(await self._plan.status(given.agent)))

    async def comparisons(self, _request: Request, given: ListComparisonsParameters) -> Response:
        """What the two sides of a shadowed agent have answered to the same tasks, newest first."""
        found = await self._plan.comparisons(
            given.agent,
            limit=given.limit + 1,
            before=decode_cursor(given.cursor),
            verdict=given.verdict,
        )
        records, next_cursor = page(found, given.limit, lambda record: record.id)
        return json_response(page_of([comparison_resource(record) for record in records], next_cursor))

    async def check(self, _request: Request, given: AgentParameters) -> Response:
        """Checks where the agent is to move to, without giving it work, and keeps the report."""
        record, _ = await self._migrations.check(given.agent)
        return json_response(check_report(record))

    async def ready(self, request: Request, given: AgentParameters) -> Response:
        """Attests what no program can check; may also name where the agent is to move to."""
        form, reason = await self._asked(request, ReadyRequest)
        return _changed(await self._migrations.attest(given.agent, form.note, form.target, reason))

    async def shadow(self, request: Request, given: AgentParameters) -> Response:
        """Sends the input of some runs beside to the new side, and compares its answers; no run notices."""
        form, reason = await self._asked(request, TrialRequest)
        change = await self._migrations.shadow(given.agent, form.target, form.percent, form.limits, reason)
        return _changed(change)

    async def canary(self, request: Request, given: AgentParameters) -> Response:
        """Lets a share of the runs that begin from now on call the new side, and no other."""
        form, reason = await self._asked(request, TrialRequest)
        change = await self._migrations.canary(given.agent, form.target, form.percent, form.limits, reason)
        return _changed(change)

    async def cutover(self, request: Request, given: AgentParameters) -> Response:
        """Lets all runs that begin from now on call the new side; `errors` of a 409 are all reasons why not."""
        form, reason = await self._asked(request, CutoverRequest)
        return _changed(await self._migrations.cut_over(given.agent, reason, force=form.force))

    async def cutover_all(self, request: Request) -> Response:
        """
        The cutover of every agent that speaks Simple A2A or is in the middle of a migration: of all, or of none.
        """
        form, reason = await self._asked(request, CutoverRequest)
        changes = await self._migrations.cut_over_all(reason, force=form.force)
        return _outcome(BulkChangeResult(changed=list(changes), refused=[], left_alone=[]))

    async def rollback(self, request: Request, given: AgentParameters) -> Response:
        """Lets all runs that begin from now on call the old side again."""
        _, reason = await self._asked(request, RollbackRequest)
        return _changed(await self._migrations.roll_back(given.agent, reason))

    async def rollback_all(self, request: Request) -> Response:
        """Rolls back every agent that still has an old side, and names those that have none: `left_alone`."""
        _, reason = await self._asked(request, RollbackRequest)
        return _outcome(await self._migrations.roll_back_all(reason))

    async def finish(self, request: Request, given: AgentParameters) -> Response:
        """Registers the agent as its new side; the old one is given up."""
        _, reason = await self._asked(request, MigrationRequest)
        return _changed(await self._migrations.finish(given.agent, reason))

    async def finish_all(self, request: Request) -> Response:
        """Finishes every migration that has been cut over, and names those that have to wait: `refused`."""
        _, reason = await self._asked(request, MigrationRequest)
        return _outcome(await self._migrations.finish_all(reason))

    async def _asked(self, request: Request, form: type[_Form]) -> tuple[_Form, ChangeReason]:
        sent = await read_body(request, self._limits.max_body_bytes)
        asked = convert(decode_object(sent or b"{}"), form)
        # A key says for sure who it is; without keys it is whoever they say they are.
        return asked, change_reason(caller_of(request.scope) or asked.who, asked.why)


def _changed(change: StageChange) -> Response:
    return json_response(migration_change(change))


def _outcome(outcome: BulkChangeResult) -> Response:
    return json_response(migration_outcome(outcome))


def migration_operations(services: Services) -> list[Operation]:
    routes = MigrationRoutes(services)
    one = f"{MIGRATION}/agents/{{agent}}"
    changed = {
        200: ResponseSpec("How it stands now; without an `event` it stood so already.", MigrationChange)
    }
    outcome = {200: ResponseSpec("The agents that have changed, and those that have not.", MigrationOutcome)}
    return [
        operation(
            f"GET {MIGRATION}", routes.plan, TextPageParameters, name="plan_migration", tag="migration",
            responses={200: ResponseSpec("A page of agents.", MigrationPage)}, problems=(422,),
        ),
        operation(
            f"GET {MIGRATION}/events", routes.events, ListAgentEventsParameters, name="list_agent_events",
            tag="migration", responses={200: ResponseSpec("A page of events.", AgentEventPage)}, problems=(404, 422),
        ),
        operation(
            f"GET {one}", routes.status, AgentParameters, name="get_migration", tag="migration",
            responses={200: ResponseSpec("The agent's migration.", MigrationStatus)}, problems=(404,),
        ),
        operation(
            f"GET {one}/comparisons", routes.comparisons, ListComparisonsParameters, name="list_comparisons",
            tag="migration", responses={200: ResponseSpec("A page of comparisons.", ComparisonPage)},
            problems=(404, 422),
        ),
        operation(
            f"POST {one}/check", routes.check, AgentParameters, name="check_migration", tag="migration",
            responses={200: ResponseSpec("What was found.", CheckReport)}, problems=(404, 409, 422),
        ),
        *(
            operation(
                f"POST {one}/{name}", endpoint, AgentParameters, name=f"migration_{name}",
                tag="migration", body=body, responses=changed, problems=(400, 404, 409, 413, 422),
            )
            for name, endpoint, body in (
                ("ready", routes.ready, Body(ReadyRequest)),
                ("shadow", routes.shadow, Body(TrialRequest)),
                ("canary", routes.canary, Body(TrialRequest)),
                ("cutover", routes.cutover, Body(CutoverRequest, required=False)),
                ("rollback", routes.rollback, Body(RollbackRequest)),
                ("finish", routes.finish, Body(MigrationRequest, required=False)),
            )
        ),
        *(
            operation(
                f"POST {MIGRATION}/{name}", endpoint, name=f"migration_{name}_all", tag="migration",
                body=body, responses=outcome, problems=(400, 409, 413, 422),
            )
            for name, endpoint, body in (
                ("cutover", routes.cutover_all, Body(CutoverRequest, required=False)),
                ("rollback", routes.rollback_all, Body(RollbackRequest)),
                ("finish", routes.finish_all, Body(MigrationRequest, required=False)),
            )
        ),
    ]  # fmt: skip
