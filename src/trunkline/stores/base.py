"""
The store: the only truth, behind one port.

`Store` reads what is committed; a `Transaction` writes. Both are grouped by what is stored: `store.agents.get(name)`,
`tx.tasks.claim(...)`. The contract of each group, and its records, are in `stores.port`; the records are also
importable from here.

Every method of a transaction is one set-based statement over a whole batch. Payloads are bytes. Times are `Instant`s,
and a transaction's `now` is the database's clock: nothing else decides leases and timers.

A new backend is a folder next to `sqlite/` that passes `tests/contract`. CONTRIBUTING.md lists the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from trunkline.clock import Instant
from trunkline.machine.state import ParentStep
from trunkline.messages import Dispatch, TaskKey
from trunkline.stores.port.agents.activity import ActivityReads, ActivityWrites
from trunkline.stores.port.agents.agent_events import (
    AgentEventReads,
    AgentEventWrites,
    CheckReads,
    CheckWrites,
    ComparisonReads,
    ComparisonWrites,
)
from trunkline.stores.port.agents.output_cache import OutputCacheReads, OutputCacheWrites
from trunkline.stores.port.agents.registry import (
    AgentLoad,
    AgentReads,
    AgentWrites,
    BreakerChange,
    RecordedCallEnd,
)
from trunkline.stores.port.automation.callbacks import CallbackReads, CallbackWrites
from trunkline.stores.port.automation.jobs import JobReads, JobWrites
from trunkline.stores.port.automation.received_events import ReceivedEventReads, ReceivedEventWrites
from trunkline.stores.port.automation.subscriptions import SubscriptionReads, SubscriptionWrites
from trunkline.stores.port.automation.triggers import (
    StartQueueReads,
    StartQueueWrites,
    TriggerReads,
    TriggerWrites,
)
from trunkline.stores.port.human_tasks import HumanTaskReads, HumanTaskWrites
from trunkline.stores.port.input_queue import InputQueueWrites, QueuedInput, Timer, TimerWrites, WokenRun
from trunkline.stores.port.keys_and_secrets import (
    ApiKey,
    KeyReads,
    KeyRole,
    KeyWrites,
    SecretReads,
    SecretWrites,
)
from trunkline.stores.port.messaging import (
    DeadLetter,
    DeadLetterReads,
    DeadLetterWrites,
    DispatchWrites,
    ExchangeReads,
    ExchangeRecord,
    ExchangeWrites,
    InputsQueued,
    Notification,
    OutboxWrites,
    PollsDue,
    RunsChanged,
)
from trunkline.stores.port.operations import (
    AuditReads,
    AuditWrites,
    Backlog,
    BacklogReads,
    ProcessReads,
    ProcessWrites,
)
from trunkline.stores.port.published_tasks import (
    FollowUp,
    PublishedTask,
    PublishedTaskReads,
    PublishedTaskWrites,
    TaskFilter,
    TaskPlace,
)
from trunkline.stores.port.push_configs import PushConfigReads, PushConfigWrites
from trunkline.stores.port.runs import (
    EventRecord,
    ExistingRun,
    NewRun,
    RunReads,
    RunRecord,
    RunWrites,
    Transition,
    WaitingStep,
    WaitKind,
    WaitPosition,
)
from trunkline.stores.port.tasks import (
    ClaimedTask,
    LeaseWrites,
    QueuedTask,
    ReclaimedTasks,
    StoppedTask,
    TaskAnswer,
    TaskStatus,
    TaskWrites,
)
from trunkline.stores.port.transfer import ExportRecord, TransferReads, TransferWrites
from trunkline.stores.port.workflows import (
    LastRun,
    SavedSchema,
    SchemaReads,
    SchemaWrites,
    WorkflowReads,
    WorkflowVersion,
    WorkflowWrites,
)

__all__ = [
    "AgentLoad",
    "ApiKey",
    "Backlog",
    "BreakerChange",
    "ClaimedTask",
    "DeadLetter",
    "Dispatch",
    "EventRecord",
    "ExchangeRecord",
    "ExistingRun",
    "ExportRecord",
    "FollowUp",
    "InputsQueued",
    "KeyRole",
    "LastRun",
    "NewRun",
    "Notification",
    "ParentStep",
    "PollsDue",
    "PublishedTask",
    "QueuedInput",
    "QueuedTask",
    "ReclaimedTasks",
    "RecordedCallEnd",
    "RunRecord",
    "RunsChanged",
    "SavedSchema",
    "StoppedTask",
    "Store",
    "TaskAnswer",
    "TaskFilter",
    "TaskKey",
    "TaskPlace",
    "TaskStatus",
    "Timer",
    "Transaction",
    "Transition",
    "WaitKind",
    "WaitPosition",
    "WaitingStep",
    "WokenRun",
    "WorkflowVersion",
]


class Transaction(Protocol):
    """One atomic change. All of it is durable when the `async with` block has ended, or none of it exists."""

    @property
    def now(self) -> Instant: ...

    @property
    def agents(self) -> AgentWrites: ...

    @property
    def agent_events(self) -> AgentEventWrites: ...

    @property
    def checks(self) -> CheckWrites: ...

    @property
    def comparisons(self) -> ComparisonWrites: ...

    @property
    def activity(self) -> ActivityWrites: ...

    @property
    def workflows(self) -> WorkflowWrites: ...

    @property
    def runs(self) -> RunWrites: ...

    @property
    def input_queue(self) -> InputQueueWrites: ...

    @property
    def timers(self) -> TimerWrites: ...

    @property
    def received_events(self) -> ReceivedEventWrites: ...

    @property
    def tasks(self) -> TaskWrites: ...

    @property
    def leases(self) -> LeaseWrites: ...

    @property
    def exchanges(self) -> ExchangeWrites: ...

    @property
    def outbox(self) -> OutboxWrites: ...

    @property
    def dispatches(self) -> DispatchWrites: ...

    @property
    def dead_letters(self) -> DeadLetterWrites: ...

    @property
    def published_tasks(self) -> PublishedTaskWrites: ...

    @property
    def human_tasks(self) -> HumanTaskWrites: ...

    @property
    def push_configs(self) -> PushConfigWrites: ...

    @property
    def callbacks(self) -> CallbackWrites: ...

    @property
    def subscriptions(self) -> SubscriptionWrites: ...

    @property
    def keys(self) -> KeyWrites: ...

    @property
    def secrets(self) -> SecretWrites: ...

    @property
    def schemas(self) -> SchemaWrites: ...

    @property
    def jobs(self) -> JobWrites: ...

    @property
    def audit(self) -> AuditWrites: ...

    @property
    def processes(self) -> ProcessWrites: ...

    @property
    def start_queue(self) -> StartQueueWrites: ...

    @property
    def output_cache(self) -> OutputCacheWrites: ...

    @property
    def triggers(self) -> TriggerWrites: ...

    @property
    def transfer(self) -> TransferWrites: ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """An exception undoes the block; the transaction itself goes on."""
        ...

    async def notify(self, notification: Notification) -> None:
        """Notify the other processes when this transaction has committed; the notification may be lost."""
        ...


class Store(Protocol):
    """Opened by its backend, e.g. `open_sqlite`; closed by leaving its `async with`."""

    @property
    def agents(self) -> AgentReads: ...

    @property
    def agent_events(self) -> AgentEventReads: ...

    @property
    def checks(self) -> CheckReads: ...

    @property
    def comparisons(self) -> ComparisonReads: ...

    @property
    def activity(self) -> ActivityReads: ...

    @property
    def output_cache(self) -> OutputCacheReads: ...

    @property
    def workflows(self) -> WorkflowReads: ...

    @property
    def runs(self) -> RunReads: ...

    @property
    def published_tasks(self) -> PublishedTaskReads: ...

    @property
    def received_events(self) -> ReceivedEventReads: ...

    @property
    def callbacks(self) -> CallbackReads: ...

    @property
    def human_tasks(self) -> HumanTaskReads: ...

    @property
    def push_configs(self) -> PushConfigReads: ...

    @property
    def subscriptions(self) -> SubscriptionReads: ...

    @property
    def exchanges(self) -> ExchangeReads: ...

    @property
    def dead_letters(self) -> DeadLetterReads: ...

    @property
    def keys(self) -> KeyReads: ...

    @property
    def secrets(self) -> SecretReads: ...

    @property
    def schemas(self) -> SchemaReads: ...

    @property
    def jobs(self) -> JobReads: ...

    @property
    def audit(self) -> AuditReads: ...

    @property
    def processes(self) -> ProcessReads: ...

    @property
    def backlog(self) -> BacklogReads: ...

    @property
    def start_queue(self) -> StartQueueReads: ...

    @property
    def triggers(self) -> TriggerReads: ...

    @property
    def transfer(self) -> TransferReads: ...

    def transaction(self, *, durable: bool = True) -> AbstractAsyncContextManager[Transaction]:
        """
        Without `durable` it does not wait for the disk, and a crash may undo it as a whole after it has ended.

        For what is safe to do twice, like taking from the outbox.
        """
        ...

    def listen(self, on_notification: Callable[[Notification], None]) -> AbstractAsyncContextManager[None]:
        """
        Call `on_notification` for each notification of any process, this one included, while the block runs.

        Notices may be lost. Where one process owns the store there are none.
        """
        ...

    async def check(self) -> None:
        """Raises `Unavailable` with the reason when the store cannot be used."""
        ...
