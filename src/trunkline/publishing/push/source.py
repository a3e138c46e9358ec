"""
The source of push notifications: makes the requests that tell a receiver of the updates of a task.

    1.0   one request for each update, with what a stream would send: {"task"}, {"statusUpdate"}, {"artifactUpdate"}
    0.3   one request for each change of the state, with the task

The callbacks only have the numbers of events. What a request says is made of the run when it is sent, so it is the same
when it is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import structlog

from trunkline.clock import Clock, Instant
from trunkline.errors import ConfigurationError
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, encode
from trunkline.publishing.answers import AnswerReader
from trunkline.publishing.bindings.v03 import task_v03
from trunkline.publishing.operations import ANONYMOUS
from trunkline.publishing.tasks import CallerTask, TaskReader, submitted
from trunkline.publishing.updates import TaskUpdates, Update
from trunkline.services.callbacks.push_configs import PushConfigs, PushReceiver
from trunkline.services.callbacks.sources import (
    CallbackReceiver,
    CallbackReport,
    CallbackRequest,
    signed_headers,
)
from trunkline.services.callbacks.task_updates import event_number, key_of
from trunkline.services.runs.queries import RunQueries
from trunkline.services.workflows import Workflows
from trunkline.stores.base import EventRecord, PublishedTask, Store, Transaction
from trunkline.stores.port.automation.callbacks import StoredCallback
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - a name
_MAX_ERROR_CHARACTERS = 500
# Twice as many as are sent from at once. Each keeps at most `MAX_KEPT_CHARACTERS`.
_KEPT_UPDATES = 128


class PushNotificationSource:
    """A `CallbackSource`."""

    def __init__(
        self,
        store: Store,
        configs: PushConfigs,
        tasks: TaskReader,
        queries: RunQueries,
        answers: AnswerReader,
        workflows: Workflows,
        *,
        clock: Clock,
        max_failures: int,
    ) -> None:
        """`max_failures`: attempts in a row after which a config is disabled."""
        self._store = store
        self._configs = configs
        self._tasks = tasks
        self._queries = queries
        self._answers = answers
        self._workflows = workflows
        self._clock = clock
        self._max_failures = max_failures
        # By queue; those that were used last at the end.
        self._updates: dict[str, TaskUpdates] = {}

    async def receiver(self, queue: str) -> CallbackReceiver | None:
        key = key_of(queue)
        config = await self._store.push_configs.get(key)
        stored = None if config is None else await self._store.published_tasks.get(key.run_id)
        if config is None or stored is None:
            return None
        why = await self._why_not(stored.caller)
        if why is not None:
            if config.disabled_at is None:
                # Operators see why nothing is sent any more.
                async with self._store.transaction() as tx:
                    await tx.push_configs.note(key, config.failures, why, disable=True)
            return SilentReceiver()
        try:
            to = self._configs.receiver(config)
        except ConfigurationError as exc:
            # Its notifications wait for the key, until they are too old.
            log.error(log_events.CALLBACKS_FAILED, queue=queue, error=exc.message, fix=exc.fix)
            return SilentReceiver()
        return TaskReceiver(self, queue, to, stored, is_enabled=config.disabled_at is None)

    async def _why_not(self, caller: str) -> str | None:
        """Why the caller no longer gets notifications of its tasks."""
        if caller in ("", ANONYMOUS):
            return None
        key = await self._store.keys.by_id(caller)
        if key is None or key.revoked_at is not None:
            return "The API key of the caller was revoked."
        return "The API key of the caller has expired." if key.is_expired(self._clock.now()) else None

    async def task(self, stored: PublishedTask) -> CallerTask | None:
        return await self._tasks.of(stored)

    async def artifacts(self, task: CallerTask) -> Sequence[JsonObject]:
        return (await self._tasks.answer(task)).artifacts

    async def event(self, run_id: RunId, seq: int) -> EventRecord | None:
        events = await self._queries.events(run_id, after=seq - 1, limit=1)
        return events[0] if events and events[0].seq == seq else None

    async def take_updates(self, queue: str, task: PublishedTask) -> TaskUpdates | None:
        """What was read for the notification before is not read again. None: the task no longer exists."""
        known = self._updates.pop(queue, None)
        if known is not None:
            return known
        found = await self._tasks.of(task)
        if found is None:
            return None
        workflow = await self._workflows.compiled(found.record.workflow_id, found.record.workflow_version)
        return TaskUpdates(self._queries, self._answers, task.run_id, found.message, workflow)

    def keep_updates(self, queue: str, updates: TaskUpdates) -> None:
        self._updates[queue] = updates
        if len(self._updates) > _KEPT_UPDATES:
            del self._updates[next(iter(self._updates))]

    async def note(self, tx: Transaction, queue: str, report: CallbackReport) -> bool:
        is_disabled = report.failures >= self._max_failures
        error = None if report.error is None else report.error[:_MAX_ERROR_CHARACTERS]
        await tx.push_configs.note(key_of(queue), report.failures, error, disable=is_disabled)
        return is_disabled

    async def note_dropped(self, tx: Transaction, queue: str, dropped: Sequence[StoredCallback]) -> None:
        """No history of updates is kept."""
        del tx, queue, dropped


class SilentReceiver:
    """Nothing may be sent: its config cannot be decrypted, or its caller has no access any more."""

    is_enabled = False
    host = ""

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[CallbackRequest]:
        del callback, now
        return []


class TaskReceiver:
    """Who gets the updates of one task by one config. Callbacks must be given in their order."""

    def __init__(
        self,
        source: PushNotificationSource,
        queue: str,
        receiver: PushReceiver,
        task: PublishedTask,
        *,
        is_enabled: bool,
    ) -> None:
        self._source = source
        self._queue = queue
        self._receiver = receiver
        self._task = task
        self._is_enabled = is_enabled

    @property
    def is_enabled(self) -> bool:
        return self._is_enabled

    @property
    def host(self) -> str:
        return urlsplit(self._receiver.url).netloc

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[CallbackRequest]:
        seq = event_number(callback.payload)
        if seq is None:
            return await self._first(now)
        event = await self._source.event(self._task.run_id, seq)
        # Taken while it is used: if a claim has ended, another one may send from this queue in the meantime.
        updates = None if event is None else await self._source.take_updates(self._queue, self._task)
        if event is None or updates is None:
            return []
        found = await updates.of_event(event)
        requests = [
            self._request(update.id, body, now)
            for update in found
            if (body := await self._body(update, updates, seq)) is not None
        ]
        self._source.keep_updates(self._queue, updates)
        return requests

    async def _first(self, now: Instant) -> Sequence[CallbackRequest]:
        task = await self._source.task(self._task)
        if task is None:
            return []
        first = submitted(task)
        return [self._request("0", task_v03(first) if self._is_old else {"task": first}, now)]

    @property
    def _is_old(self) -> bool:
        return self._receiver.version == "0.3"

    async def _body(self, update: Update, updates: TaskUpdates, seq: int) -> JsonObject | None:
        if not self._is_old:
            return update.body
        task = None if update.state is None else await self._source.task(self._task)
        return None if task is None else task_v03(await self._as_of(task, update, updates, seq))

    async def _as_of(self, task: CallerTask, update: Update, updates: TaskUpdates, seq: int) -> JsonObject:
        """The task with this state."""
        fields = update.body["statusUpdate"]
        status = fields.get("status") if isinstance(fields, dict) else None
        shown = submitted(task)
        shown["status"] = status
        if update.state == "completed":
            # Read after the callback was claimed, so it has ended.
            artifacts = await self._source.artifacts(task)
        else:
            artifacts = await updates.partial_artifacts(seq)
        if artifacts:
            shown["artifacts"] = [*artifacts]
        return shown

    def _request(self, update_id: str, body: JsonObject, now: Instant) -> CallbackRequest:
        receiver = self._receiver
        content = encode(body)
        headers = {"Content-Type": "application/json", "A2A-Version": receiver.version}
        if receiver.token is not None:
            headers[TOKEN_HEADER] = receiver.token
        if receiver.scheme is not None and receiver.credentials is not None:
            headers["Authorization"] = f"{receiver.scheme} {receiver.credentials}"
        if receiver.secret is not None:
            message_id = f"{self._task.run_id}/{update_id}"
            headers |= signed_headers([receiver.secret], message_id, now, content)
        return CallbackRequest(url=receiver.url, headers=headers, body=content)
