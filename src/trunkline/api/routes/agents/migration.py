"""Migrations of agents: the plan, the history, and the commands."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.agents.migration.comparison import ComparisonVerdict
from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.middleware.auth import caller_of
from trunkline.api.paging import NumberPageParameters, TextPageParameters, decode_cursor, page
from trunkline.api.resources.agents.checks import CheckReport, check_report
from trunkline.api.resources.agents.migration import (
    AgentEventPage,
    ComparisonPage,
    CutoverRequest,
    MigrationChange,
    MigrationCheckRequest,
    MigrationOutcome,
    MigrationPage,
    MigrationRequest,
    MigrationStatus,
    ReadyRequest,
    RollbackRequest,
    RolloutStageRequest,
    agent_event,
    comparison_resource,
    migration_change,
    migration_entry,
    migration_outcome,
    migration_status,
)
from trunkline.api.resources.common import page_of
from trunkline.api.routes.agents.registry import AgentParameter, AgentParameters
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
        Annotated[
            str,
            Meta(description="Return only events of this agent: its name or id. A deleted agent works, too."),
        ]
        | None
    ) = None


class ListComparisonsParameters(TextPageParameters, frozen=True, kw_only=True):
    agent: AgentParameter
    verdict: (
        Annotated[ComparisonVerdict, Meta(description="Return only comparisons with this verdict.")] | None
    ) = None


_Form = TypeVar("_Form", bound=MigrationRequest)


class MigrationRoutes:
    def __init__(self, services: Services) -> None:
        self._limits = services.limits
        self._migrations = services.migrations
        self._plan = services.migration_plan

    async def plan(self, _request: Request, given: TextPageParameters) -> Response:
        """List all agents with their protocols, the state of their migrations, and what blocks the cutover."""
        found = await self._plan.entries(limit=given.limit + 1, after=decode_cursor(given.cursor))
        entries, next_cursor = page(found, given.limit, lambda entry: entry.agent)
        return json_response(page_of([migration_entry(entry) for entry in entries], next_cursor))

    async def events(self, _request: Request, given: ListAgentEventsParameters) -> Response:
        """List the history of agents, newest first: changes of migrations, cards and grades."""
        before = None if given.cursor is None else int(given.cursor)
        found = await self._plan.events(limit=given.limit + 1, before=before, name=given.agent)
        events, next_cursor = page(found, given.limit, lambda event: event.id)
        return json_response(page_of([agent_event(event) for event in events], next_cursor))

    async def status(self, _request: Request, given: AgentParameters) -> Response:
        """Get the state of an agent's migration."""
        return json_response(migration_status(await self._plan.status(given.agent)))

    async def comparisons(self, _request: Request, given: ListComparisonsParameters) -> Response:
        """List the comparisons between source and target of a shadowed agent, newest first."""
        found = await self._plan.comparisons(
            given.agent,
            limit=given.limit + 1,
            before=decode_cursor(given.cursor),
            verdict=given.verdict,
        )
        records, next_cursor = page(found, given.limit, lambda record: record.id)
        return json_response(page_of([comparison_resource(record) for record in records], next_cursor))

    async def check(self, request: Request, given: AgentParameters) -> Response:
        """Check the target of an agent's migration, and store the report. Only `active` sends it work."""
        sent = await read_body(request, self._limits.max_body_bytes)
        wanted = convert(decode_object(sent or b"{}"), MigrationCheckRequest)
        record, _ = await self._migrations.check(given.agent, active=wanted.active)
        return json_response(check_report(record))

    async def ready(self, request: Request, given: AgentParameters) -> Response:
        """Attest what no check can verify, and optionally set the target."""
        form, reason = await self._asked(request, ReadyRequest)
        return _changed(await self._migrations.attest(given.agent, form.note, form.target, reason))

    async def shadow(self, request: Request, given: AgentParameters) -> Response:
        """
        Start the shadow stage of a migration.

        The calls of a share of the runs are copied to the target, and the answers are compared. Runs use only the
        answers of the source.
        """
        form, reason = await self._asked(request, RolloutStageRequest)
        change = await self._migrations.shadow(given.agent, form.target, form.percent, form.limits, reason)
        return _changed(change)

    async def canary(self, request: Request, given: AgentParameters) -> Response:
        """
        Start the canary stage of a migration.

        A share of the new runs calls the target instead of the source.
        """
        form, reason = await self._asked(request, RolloutStageRequest)
        change = await self._migrations.canary(given.agent, form.target, form.percent, form.limits, reason)
        return _changed(change)

    async def cutover(self, request: Request, given: AgentParameters) -> Response:
        """
        Cut an agent over: all new runs call the target.

        If the agent is not ready, the response is a 409, and its `errors` list the reasons.
        """
        form, reason = await self._asked(request, CutoverRequest)
        return _changed(await self._migrations.cut_over(given.agent, reason, force=form.force))

    async def cutover_all(self, request: Request) -> Response:
        """
        Cut all agents over.

        This affects all agents that speak Simple A2A or have a migration in progress. Either all are cut over, or none.
        """
        form, reason = await self._asked(request, CutoverRequest)
        changes = await self._migrations.cut_over_all(reason, force=form.force)
        return _outcome(BulkChangeResult(changed=list(changes), refused=[], left_alone=[]))

    async def rollback(self, request: Request, given: AgentParameters) -> Response:
        """Roll a migration back: all new runs call the source again."""
        form, reason = await self._asked(request, RollbackRequest)
        return _changed(await self._migrations.roll_back(given.agent, reason, force=form.force))

    async def rollback_all(self, request: Request) -> Response:
        """
        Roll all migrations back.

        This affects all agents that still have a source. `left_alone` lists those that do not.
        """
        form, reason = await self._asked(request, RollbackRequest)
        return _outcome(await self._migrations.roll_back_all(reason, force=form.force))

    async def finish(self, request: Request, given: AgentParameters) -> Response:
        """
        Finish a migration.

        The agent is registered with the target, and the source is dropped. This cannot be rolled back.
        """
        _, reason = await self._asked(request, MigrationRequest)
        return _changed(await self._migrations.finish(given.agent, reason))

    async def finish_all(self, request: Request) -> Response:
        """
        Finish all migrations that have been cut over.

        `refused` lists those that have to wait.
        """
        _, reason = await self._asked(request, MigrationRequest)
        return _outcome(await self._migrations.finish_all(reason))

    async def _asked(self, request: Request, form: type[_Form]) -> tuple[_Form, ChangeReason]:
        sent = await read_body(request, self._limits.max_body_bytes)
        asked = convert(decode_object(sent or b"{}"), form)
        # An API key identifies the caller. Without keys, the caller's own statement is used.
        return asked, change_reason(caller_of(request.scope) or asked.who, asked.why)


def _changed(change: StageChange) -> Response:
    return json_response(migration_change(change))


def _outcome(outcome: BulkChangeResult) -> Response:
    return json_response(migration_outcome(outcome))


def migration_operations(services: Services) -> list[Operation]:
    routes = MigrationRoutes(services)
    one = f"{MIGRATION}/agents/{{agent}}"
    changed = {200: ResponseSpec("The new state. `event` is null if nothing changed.", MigrationChange)}
    outcome = {200: ResponseSpec("The agents that changed, and those that did not.", MigrationOutcome)}
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
            body=Body(MigrationCheckRequest, required=False),
            responses={200: ResponseSpec("The report of the check.", CheckReport)}, problems=(400, 404, 409, 413, 422),
        ),
        *(
            operation(
                f"POST {one}/{name}", endpoint, AgentParameters, name=f"migration_{name}",
                tag="migration", body=body, responses=changed, problems=(400, 404, 409, 413, 422),
            )
            for name, endpoint, body in (
                ("ready", routes.ready, Body(ReadyRequest)),
                ("shadow", routes.shadow, Body(RolloutStageRequest)),
                ("canary", routes.canary, Body(RolloutStageRequest)),
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
