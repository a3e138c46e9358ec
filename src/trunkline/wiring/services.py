"""The services of the API, and the objects behind them, made from what the process shares."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trunkline.api.services import Probes, Services
from trunkline.bridge.agents.inspection import AgentHealthCheck, CardViewer
from trunkline.bridge.calls.context import CallContext, CallLimits
from trunkline.bridge.calls.detached import AgentTestCaller, DetachedCaller
from trunkline.brokers.base import Lag
from trunkline.services.agents.activity import AgentActivityReader
from trunkline.services.agents.checks import Checks
from trunkline.services.agents.inspection import AgentTestCalls
from trunkline.services.callbacks.sources import CallbackSource
from trunkline.services.callbacks.task_updates import PUSH_KIND
from trunkline.services.events.events import Events
from trunkline.services.events.intake import EventIntake
from trunkline.services.messaging.dead_letters import DeadLetters
from trunkline.services.messaging.event_deliveries import readers_of_dead_letters
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.plan import MigrationPlan
from trunkline.services.operations.audit_log import AuditLog
from trunkline.services.operations.system_status import CachedOutputs, Deployment, SystemMonitor
from trunkline.services.people.answer_links import AnswerLinks
from trunkline.services.people.answers import HumanTaskAnswers
from trunkline.services.people.claims import TaskClaims
from trunkline.services.people.comments import TaskComments
from trunkline.services.people.files import AnswerFiles
from trunkline.services.runs.bulk import BulkOperations
from trunkline.services.runs.compensations import RunCompensations
from trunkline.services.runs.inbox import Inbox
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.labels import RunLabels
from trunkline.services.runs.queries import RunQueries
from trunkline.services.runs.runs import Runs
from trunkline.services.schemas import Schemas
from trunkline.services.security.api_keys import ApiKeys
from trunkline.services.subscriptions.reporter import CALLBACK_KIND
from trunkline.services.subscriptions.source import SubscriptionCallbacks
from trunkline.services.subscriptions.subscriptions import Subscriptions
from trunkline.services.triggers.triggers import Triggers
from trunkline.services.triggers.webhooks import Webhooks
from trunkline.stores.port.operations import Process
from trunkline.wiring.agent_checks import RegisteredAgentCheck
from trunkline.wiring.event_sources import SourceConsumers
from trunkline.wiring.messaging import Messaging
from trunkline.wiring.process_context import ProcessContext


def agent_client(context: ProcessContext) -> CallContext:
    return CallContext(
        context.transport,
        context.batches,
        context.clock,
        context.metrics,
        limits=CallLimits(
            max_stream_seconds=context.settings.line_timeout.total_seconds(),
            max_answer_bytes=context.settings.max_answer_bytes,
            max_wire_bytes=context.settings.max_wire_bytes,
            max_body_bytes=context.settings.max_body_bytes,
        ),
        blobs=context.blobs,
        traces=context.traces,
        push_targets=context.push_notifications,
        secrets=context.secrets,
    )


def callback_sources(context: ProcessContext) -> dict[str, CallbackSource]:
    """By the kind of their callbacks."""
    # It imports what turns runs into tasks, which a bridge without the API has no other use for.
    from trunkline.publishing.answers import AnswerReader  # noqa: PLC0415
    from trunkline.publishing.files import StoredFiles  # noqa: PLC0415
    from trunkline.publishing.push.source import PushNotificationSource  # noqa: PLC0415
    from trunkline.publishing.tasks import TaskReader  # noqa: PLC0415

    queries = RunQueries(context.store, context.workflows, context.watchers, context.clock)
    answers = AnswerReader(context.workflows, StoredFiles(context.blobs, context.store.runs))
    source = PushNotificationSource(
        context.store,
        context.push_configs,
        TaskReader(context.store, queries, answers),
        queries,
        answers,
        context.workflows,
        clock=context.clock,
        max_failures=context.settings.push_max_failures,
    )
    subscriptions = SubscriptionCallbacks(context.store, context.delivery_requests)
    return {PUSH_KIND: source, CALLBACK_KIND: subscriptions}


def migrations(context: ProcessContext) -> Migrations:
    check = RegisteredAgentCheck(
        context.transport, context.agent_resolver, context.tokens, context.store, context.clock
    )

    return Migrations(
        context.store, context.agent_cache, context.routing, context.drift_recorder, check, context.metrics
    )


def system_monitor(
    context: ProcessContext,
    messaging: Messaging,
    sources: SourceConsumers,
    process: Process,
    *,
    alone: bool,
) -> SystemMonitor:
    setup = Deployment(
        mode="embedded" if alone and not context.settings.uses_kafka else "distributed",
        store="postgresql" if context.settings.uses_postgres else "sqlite",
        broker="kafka" if context.settings.uses_kafka else "memory",
    )

    async def lags_of(pools: Sequence[str]) -> Sequence[Lag] | None:
        ours, of_sources = await asyncio.gather(messaging.consumer_lags(pools), sources.lags())
        return None if ours is None and not of_sources else [*(ours or ()), *of_sources]

    return SystemMonitor(context.store, context.clock, process, setup, lags_of)


def _answer_links(context: ProcessContext, inbox: Inbox) -> AnswerLinks:
    return AnswerLinks(
        context.store,
        inbox,
        context.answer_tokens,
        context.clock,
        context.groups,
        public_url=context.settings.public_url,
    )


def api_services(
    context: ProcessContext,
    intake: Intake,
    event_intake: EventIntake,
    probes: Probes,
    oversight: SystemMonitor,
) -> Services:
    run_queries = RunQueries(context.store, context.workflows, context.watchers, context.clock)
    inbox = Inbox(context.store, context.workflows, context.clock, context.groups)
    return Services(
        registry=context.registry,
        secrets=context.secrets,
        api_keys=ApiKeys(context.store),
        workflows=context.workflows,
        schemas=Schemas(context.store),
        cached_outputs=CachedOutputs(context.store),
        run_queries=run_queries,
        webhooks=Webhooks(
            context.store,
            context.triggered_runs,
            context.secrets,
            context.webhook_addresses,
            intake,
            context.clock,
            context.metrics,
            public_url=context.settings.public_url,
        ),
        triggers=Triggers(
            context.store,
            context.workflows,
            context.triggered_runs,
            intake,
            context.clock,
            context.metrics,
        ),
        subscriptions=Subscriptions(
            context.store,
            context.subscriptions,
            context.delivery_requests,
            context.transport,
            mailer=context.mailer,
        ),
        runs=_runs(context, run_queries, intake),
        blobs=context.blobs,
        run_labels=RunLabels(context.store, context.watchers),
        run_compensations=RunCompensations(run_queries, context.workflows, intake),
        bulk_operations=BulkOperations(context.store, context.job_queued.set),
        inbox=inbox,
        answer_links=_answer_links(context, inbox),
        human_task_answers=HumanTaskAnswers(
            run_queries, context.workflows, intake, context.clock, context.groups
        ),
        task_claims=TaskClaims(run_queries, inbox, intake, context.groups),
        task_comments=TaskComments(context.store, inbox, context.clock),
        answer_files=AnswerFiles(context.store, inbox, context.blobs, context.clock),
        events=Events(context.store, run_queries, event_intake),
        push_notifications=context.push_notifications,
        push_configs=context.push_configs,
        traces=context.traces,
        dead_letters=DeadLetters(
            context.store,
            can_replay=context.settings.uses_kafka,
            read_again=readers_of_dead_letters(context.event_sources, event_intake),
        ),
        checks=Checks(
            context.store,
            context.registry,
            context.drift_recorder,
            RegisteredAgentCheck(
                context.transport, context.agent_resolver, context.tokens, context.store, context.clock
            ),
        ),
        agent_activity=AgentActivityReader(context.store, context.registry, context.clock),
        test_calls=AgentTestCalls(
            context.store,
            context.registry,
            AgentTestCaller(DetachedCaller(agent_client(context)), context.agent_routes, context.clock),
        ),
        view_card=CardViewer(context.transport, context.agent_resolver, context.tokens, context.clock),
        migrations=migrations(context),
        migration_plan=MigrationPlan(context.store),
        system_monitor=oversight,
        audit=AuditLog(context.store),
        check_health=AgentHealthCheck(
            context.transport, context.agent_resolver, context.clock, context.settings.stdio_commands
        ),
        refresh_dialect=context.agent_resolver.refresh,
        readiness=probes.readiness,
        metrics=probes.metrics,
        warnings=probes.warnings,
        keys=probes.keys,
        names=probes.names,
        limits=probes.limits,
        topics=context.settings.topics,
        ui_folder=context.settings.ui_folder,
        stopping=context.stopping,
    )


def _runs(context: ProcessContext, queries: RunQueries, intake: Intake) -> Runs:
    return Runs(
        queries,
        context.store,
        context.workflows,
        intake,
        context.watchers,
        context.clock,
        context.metrics,
        context.routing,
    )
