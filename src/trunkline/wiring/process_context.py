"""What every role of a process shares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from trunkline.bridge.agents.negotiation import DialectNegotiator
from trunkline.bridge.agents.resolver import PROCESS_HEADER, AgentResolver
from trunkline.bridge.agents.routes import AgentRouter
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.bridge.calls.batches import BatchSender
from trunkline.clock import Clock
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.agents.protocol_profiles import load_profiles
from trunkline.services.agents.push_notifications import PushNotifications, PushTokenKey
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.callbacks.push_configs import PushConfigs
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.events.sources import EventSource
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.operations.process_heartbeat import PROCESS_NAME
from trunkline.services.people.answer_links import AnswerTokens
from trunkline.services.people.rights import PeopleGroups
from trunkline.services.runs.watchers import RunWatchers
from trunkline.services.security.secrets import Secrets
from trunkline.services.security.vault import Vault
from trunkline.services.subscriptions.directory import SubscriptionDirectory
from trunkline.services.subscriptions.mail import MailPolicy, SmtpMailer
from trunkline.services.subscriptions.reporter import ChangeReporter
from trunkline.services.subscriptions.source import DeliveryRequests
from trunkline.services.triggers.starts import TriggeredRuns
from trunkline.services.triggers.webhooks import WebhookAddresses
from trunkline.services.workflows import Workflows
from trunkline.settings import Settings
from trunkline.stores.base import Store
from trunkline.stores.blobs import BlobStore
from trunkline.system_clock import SystemClock
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.answer_memory import MemoryBudget
from trunkline.transports.base import Transport
from trunkline.wiring.backends import (
    configured_sources,
    open_blobs,
    open_push_transport,
    open_transports,
    push_policy,
    trusts_callers,
)
from trunkline.wiring.interceptors import Interceptors
from trunkline.wiring.stores import open_store, read_only_if_exported, vault_keys
from trunkline.wiring.trace_export import open_traces

log = structlog.stdlib.get_logger()


@dataclass(frozen=True, kw_only=True)
class ProcessContext:
    """The settings and the objects that the roles of one process have in common."""

    settings: Settings
    clock: Clock
    interceptors: Interceptors
    store: Store
    metrics: Metrics
    traces: Traces
    transport: Transport
    # To the receivers of push notifications, whose addresses callers choose.
    push_transport: Transport
    answer_memory: MemoryBudget
    batches: BatchSender
    agent_cache: AgentCache
    registry: AgentRegistry
    drift_recorder: DriftRecorder
    secrets: Secrets
    workflows: Workflows
    triggered_runs: TriggeredRuns
    webhook_addresses: WebhookAddresses
    answer_tokens: AnswerTokens
    groups: PeopleGroups
    agent_resolver: AgentResolver
    tokens: TokenProvider
    routing: RoutingTable
    agent_routes: AgentRouter
    blobs: BlobStore | None
    push_notifications: PushNotifications
    push_configs: PushConfigs
    subscriptions: SubscriptionDirectory
    changes: ChangeReporter
    delivery_requests: DeliveryRequests
    # None: there is no mail server.
    mailer: SmtpMailer | None
    event_sources: Sequence[EventSource]
    watchers: RunWatchers = field(default_factory=RunWatchers)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    # Set when this process has accepted a job.
    job_queued: asyncio.Event = field(default_factory=asyncio.Event)

    def loop(self) -> CommitLoop:
        return CommitLoop(self.store, self.clock, self.metrics, gathers=self.settings.uses_kafka)


@asynccontextmanager
async def open_process_context(
    settings: Settings, clock: Clock | None, interceptors: Interceptors, *, alone: bool
) -> AsyncGenerator[ProcessContext]:
    """`alone`: this process is the whole system, so agents on its own machine are meant."""
    policy = _address_policy(settings, alone=alone)
    answer_memory = MemoryBudget(settings.max_memory_in_flight)
    load_profiles(settings.profiles)
    sources = configured_sources(settings)
    async with (
        open_store(settings, clock=clock, upgrade=alone) as opened,
        open_transports(settings, policy, answer_memory) as transports,
        open_push_transport(settings, transports, answer_memory, alone=alone) as push_transport,
        open_traces() as traces,
    ):
        store = await read_only_if_exported(interceptors.store(opened))
        transport = interceptors.transport(transports)
        clock = clock or SystemClock()
        agent_cache = AgentCache(store.agents, clock)
        keys = vault_keys(settings)
        metrics = Metrics()
        vault = Vault(*keys)
        subscriptions = SubscriptionDirectory()
        changes = ChangeReporter(subscriptions)
        secrets = Secrets(store, vault, clock)
        answer_tokens = AnswerTokens(*keys)
        groups = PeopleGroups(settings.groups)
        drift_recorder = DriftRecorder(store, metrics, changes)
        registry = AgentRegistry(store, vault, agent_cache, drift_recorder)
        tokens = TokenProvider(transport, clock)
        routes = RoutingTable(store.agent_events, clock)
        workflows = Workflows(store)
        call_headers = {PROCESS_HEADER: PROCESS_NAME} if settings.process_header else {}
        mailer = None if settings.mail is None else SmtpMailer(settings.mail, secrets)
        async with (
            BatchSender(transport) as batches,
            DialectNegotiator(transport, registry, clock, tokens) as negotiator,
            AgentRouter(
                agent_resolver := AgentResolver(negotiator, registry, tokens, call_headers),
                routes,
                lambda dialect_store: DialectNegotiator(transport, dialect_store, clock, tokens),
                lambda negotiator: AgentResolver(negotiator, registry, tokens, call_headers),
            ) as agent_routes,
        ):
            yield ProcessContext(
                settings=settings,
                clock=clock,
                interceptors=interceptors,
                store=store,
                metrics=metrics,
                traces=traces,
                transport=transport,
                push_transport=interceptors.transport(push_transport),
                answer_memory=answer_memory,
                batches=batches,
                agent_cache=agent_cache,
                registry=registry,
                drift_recorder=drift_recorder,
                secrets=secrets,
                subscriptions=subscriptions,
                changes=changes,
                delivery_requests=DeliveryRequests(
                    secrets,
                    answer_tokens,
                    groups,
                    settings.public_url,
                    None if settings.mail is None else MailPolicy(settings.mail),
                ),
                mailer=mailer,
                event_sources=sources,
                workflows=workflows,
                triggered_runs=TriggeredRuns(workflows, routes),
                webhook_addresses=WebhookAddresses(*keys),
                answer_tokens=answer_tokens,
                groups=groups,
                blobs=open_blobs(settings),
                agent_resolver=agent_resolver,
                tokens=tokens,
                routing=routes,
                agent_routes=agent_routes,
                push_notifications=PushNotifications(
                    PushTokenKey(*keys), store, metrics, public_url=settings.public_url
                ),
                push_configs=PushConfigs(
                    store,
                    vault,
                    clock,
                    policy if trusts_callers(settings, alone=alone) else push_policy(settings),
                ),
            )
        if mailer is not None:
            mailer.close()


def _address_policy(settings: Settings, *, alone: bool) -> AddressPolicy:
    """What may be called besides public addresses. It is logged, so that it surprises no one."""
    listed = settings.allowed_networks
    policy = AddressPolicy(listed, allow_loopback=alone, allow_private=alone and not listed)
    result = (*(("loopback",) if alone else ()), *(listed or (("private networks",) if alone else ())))
    if result:
        allowed = ", ".join(result)
        log.info(
            log_events.ADDRESSES_ALLOWED,
            networks=allowed,
            # The name in earlier versions.
            beside_public_ones=allowed,
            set_by="TRUNKLINE_ALLOWED_NETWORKS",
        )
    return policy
