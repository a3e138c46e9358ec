"""What the API needs from the rest of the system, passed in by the composition root."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from trunkline.agents import Agent
from trunkline.clock import Instant
from trunkline.messages import StepError, TopicNames
from trunkline.services.agents.activity import AgentActivityReader
from trunkline.services.agents.checks import Checks
from trunkline.services.agents.inspection import AgentTestCalls, ViewCard
from trunkline.services.agents.push_notifications import PushNotifications
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.callbacks.push_configs import PushConfigs
from trunkline.services.events.events import Events
from trunkline.services.messaging.dead_letters import DeadLetters
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.plan import MigrationPlan
from trunkline.services.operations.audit_log import AuditLog
from trunkline.services.operations.system_status import CachedOutputs, SystemMonitor
from trunkline.services.people.answer_links import AnswerLinks
from trunkline.services.people.answers import HumanTaskAnswers
from trunkline.services.people.claims import TaskClaims
from trunkline.services.people.comments import TaskComments
from trunkline.services.people.files import AnswerFiles
from trunkline.services.runs.bulk import BulkOperations
from trunkline.services.runs.compensations import RunCompensations
from trunkline.services.runs.inbox import Inbox
from trunkline.services.runs.labels import RunLabels
from trunkline.services.runs.queries import RunQueries
from trunkline.services.runs.runs import Runs
from trunkline.services.schemas import Schemas
from trunkline.services.security.api_keys import ApiKeyLookup, ApiKeys
from trunkline.services.security.secrets import Secrets
from trunkline.services.subscriptions.subscriptions import Subscriptions
from trunkline.services.triggers.triggers import Triggers
from trunkline.services.triggers.webhooks import Webhooks
from trunkline.services.workflows import Workflows
from trunkline.stores.blobs import BlobStore
from trunkline.telemetry.traces import Traces

OK = "ok"


class HealthReport(Protocol):
    """The result of an agent's health check, which the bridge makes."""

    @property
    def status(self) -> Literal["healthy", "unhealthy", "unknown"]: ...

    @property
    def checked_at(self) -> Instant: ...

    @property
    def detail(self) -> str: ...

    @property
    def protocol(self) -> str | None:
        """The agent's dialect, as far as the check could determine it."""
        ...

    @property
    def http_status(self) -> int | None: ...

    @property
    def duration_ms(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    max_body_bytes: int = 4 * 1024 * 1024
    # Of all large bodies together.
    max_body_memory: int = 512 * 1024 * 1024
    # Of one API key: at the same time, and each second.
    max_requests_per_key: int = 200
    max_rate_per_key: int = 1_000
    # Of one address that calls public publications without a key.
    max_requests_per_address: int = 50
    max_rate_per_address: int = 100


@dataclass(frozen=True, kw_only=True)
class Probes:
    """The probes of every process, whatever its roles."""

    # The state of each dependency: "ok", or what is wrong.
    readiness: Callable[[], Awaitable[Mapping[str, str]]]
    # The metrics in Prometheus' text format.
    metrics: Callable[[], Awaitable[bytes]]
    # Problems that do not stop work, but need attention.
    warnings: Callable[[], Sequence[str]] = tuple
    # None: no key is needed, on a loopback address.
    keys: ApiKeyLookup | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    # Host names that are accepted in addition to this machine's own; None: any.
    names: frozenset[str] | None = None
    # Set when the process is asked to stop: event streams and waiting requests end, so that the server can stop.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, kw_only=True)
class Services(Probes):
    registry: AgentRegistry
    secrets: Secrets
    api_keys: ApiKeys
    workflows: Workflows
    schemas: Schemas
    cached_outputs: CachedOutputs
    runs: Runs
    run_queries: RunQueries
    run_labels: RunLabels
    run_compensations: RunCompensations
    bulk_operations: BulkOperations
    triggers: Triggers
    webhooks: Webhooks
    subscriptions: Subscriptions
    dead_letters: DeadLetters
    # None: files are never stored separately from the outputs.
    blobs: BlobStore | None
    inbox: Inbox
    human_task_answers: HumanTaskAnswers
    task_claims: TaskClaims
    task_comments: TaskComments
    answer_files: AnswerFiles
    answer_links: AnswerLinks
    events: Events
    push_notifications: PushNotifications
    push_configs: PushConfigs
    checks: Checks
    agent_activity: AgentActivityReader
    test_calls: AgentTestCalls
    migrations: Migrations
    migration_plan: MigrationPlan
    system_monitor: SystemMonitor
    audit: AuditLog
    check_health: Callable[[Agent], Awaitable[HealthReport]]
    view_card: ViewCard
    # Detects an agent's dialect now and stores it; returns why that was not possible.
    refresh_dialect: Callable[[Agent], Awaitable[StepError | None]]
    traces: Traces = field(default_factory=Traces)
    topics: TopicNames = field(default_factory=TopicNames)
    # The folder with the files of the web UI; None: those in the package.
    ui_folder: Path | None = None
