"""What the API needs from the rest of the system, handed over by the composition root."""

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
from trunkline.services.messaging.dead_letters import DeadLetters
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.plan import MigrationPlan
from trunkline.services.operations.audit_log import AuditLog
from trunkline.services.operations.system_status import SystemMonitor
from trunkline.services.runs.inbox import Inbox
from trunkline.services.runs.queries import RunQueries
from trunkline.services.runs.runs import Runs
from trunkline.services.security.api_keys import ApiKeyLookup
from trunkline.services.security.secrets import Secrets
from trunkline.services.workflows import Workflows
from trunkline.stores.blobs import BlobStore
from trunkline.telemetry.traces import Traces

OK = "ok"


class HealthReport(Protocol):
    """What a health check of an agent has found; the bridge makes it."""

    @property
    def status(self) -> Literal["healthy", "unhealthy", "unknown"]: ...

    @property
    def checked_at(self) -> Instant: ...

    @property
    def detail(self) -> str: ...

    @property
    def protocol(self) -> str | None:
        """What the agent speaks, as far as the check could tell."""
        ...

    @property
    def http_status(self) -> int | None: ...

    @property
    def duration_ms(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Limits:
    max_body_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Probes:
    """What every process says about itself, whatever its roles."""

    # Each dependency with "ok", or the reason why it is not.
    readiness: Callable[[], Awaitable[Mapping[str, str]]]
    # The metrics in Prometheus' text format.
    metrics: Callable[[], Awaitable[bytes]]
    # What stops no work, and should not stay as it is.
    warnings: Callable[[], Sequence[str]] = tuple
    # Who may come in; None: everybody, on a loopback address.
    keys: ApiKeyLookup | None = None
    # Names beside this machine's own under which it may be called; None: any.
    names: frozenset[str] | None = None
    # Set when the process is asked to stop: event streams and waiting calls end, so that the server can.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, kw_only=True)
class Services(Probes):
    registry: AgentRegistry
    secrets: Secrets
    workflows: Workflows
    runs: Runs
    run_queries: RunQueries
    dead_letters: DeadLetters
    # None: no file is kept apart from its output.
    blobs: BlobStore | None
    inbox: Inbox
    push_notifications: PushNotifications
    checks: Checks
    agent_activity: AgentActivityReader
    test_calls: AgentTestCalls
    migrations: Migrations
    migration_plan: MigrationPlan
    system_monitor: SystemMonitor
    audit: AuditLog
    check_health: Callable[[Agent], Awaitable[HealthReport]]
    view_card: ViewCard
    # Looks now what an agent speaks, and keeps it; why that was not possible.
    refresh_dialect: Callable[[Agent], Awaitable[StepError | None]]
    traces: Traces = field(default_factory=Traces)
    limits: Limits = field(default_factory=Limits)
    topics: TopicNames = field(default_factory=TopicNames)
    # Where the files of the web UI are; None: in the package.
    ui_folder: Path | None = None
