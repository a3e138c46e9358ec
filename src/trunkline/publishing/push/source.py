"""
The source of push notifications: makes the requests that tell a receiver of the updates of a task.

    1.0   one request for each update, with what a stream would send: {"task"}, {"statusUpdate"}, {"artifactUpdate"}
    0.3   one request for each change of the state, with the task

The callbacks only have the numbers of events. What a request says is made of the run when it is sent, so it is the same
when it is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from trunkline.clock import Instant
from trunkline.errors import ConfigurationError
from trunkline.jsontypes import JsonObject, encode
from trunkline.publishing.answers import AnswerReader
from trunkline.publishing.bindings.v03 import task_v03
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
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.automation.callbacks import StoredCallback
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - a name
_MAX_ERROR_CHARACTERS = 500


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
        max_failures: int,
    ) -> None:
        """`max_failures`: attempts in a row after which a config is disabled."""
        self._store = store
        self._configs = configs
        self._tasks = tasks
        self._queries = queries
        self._answers = answers
        self._workflows = workflows
        self._max_failures = max_failures

    async def receiver(self, queue: str) -> CallbackReceiver | None:
        key = key_of(queue)
        config = await self._store.push_configs.get(key)
        stored = None if config is None else await self._store.published_tasks.get(key.run_id)
        if config is None or stored is None:
            return None
        task = await self._tasks.of(stored)
        if task is None:
            return None
        workflow = await self._workflows.compiled(task.record.workflow_id, task.record.workflow_version)
        updates = TaskUpdates(self._queries, self._answers, task.record.id, task.message, workflow)
        try:
            to = self._configs.receiver(config)
        except ConfigurationError as exc:
            # Its notifications wait for the key, until they are too old.
            log.error(log_events.CALLBACKS_FAILED, queue=queue, error=exc.message, fix=exc.fix)
            return UnreadableReceiver()
        return TaskReceiver(
            to,
            task,
            self._tasks,
            self._queries,
            updates,
            is_enabled=config.disabled_at is None,
        )

    async def note(self, tx: Transaction, queue: str, report: CallbackReport) -> bool:
        is_disabled = report.failures >= self._max_failures
        error = None if report.error is None else report.error[:_MAX_ERROR_CHARACTERS]
        await tx.push_configs.note(key_of(queue), report.failures, error, disable=is_disabled)
        return is_disabled

    async def note_dropped(self, tx: Transaction, queue: str, dropped: Sequence[StoredCallback]) -> None:
        """No history of updates is kept."""
        del tx, queue, dropped


class UnreadableReceiver:
    """Its config cannot be decrypted with the keys of this process."""

    is_enabled = False

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[CallbackRequest]:
        del callback, now
        return []


class TaskReceiver:
    """Who gets the updates of one task by one config. Callbacks must be given in their order."""

    def __init__(
        self,
        receiver: PushReceiver,
        task: CallerTask,
        tasks: TaskReader,
        queries: RunQueries,
        updates: TaskUpdates,
        *,
        is_enabled: bool,
    ) -> None:
        self._receiver = receiver
        self._task = task
        self._tasks = tasks
        self._queries = queries
        self._updates = updates
        self._is_enabled = is_enabled

    @property
    def is_enabled(self) -> bool:
        return self._is_enabled

    async def requests(self, callback: StoredCallback, now: Instant) -> Sequence[CallbackRequest]:
        seq = event_number(callback.payload)
        if seq is None:
            first = submitted(self._task)
            return [self._request("0", task_v03(first) if self._is_old else {"task": first}, now)]
        run_id = self._task.record.id
        events = await self._queries.events(run_id, after=seq - 1, limit=1)
        if not events or events[0].seq != seq:
            return []
        updates = await self._updates.of_event(events[0])
        if not self._is_old:
            return [self._request(update.id, update.body, now) for update in updates]
        return [
            self._request(update.id, task_v03(await self._as_of(update, seq)), now)
            for update in updates
            if update.state is not None
        ]

    @property
    def _is_old(self) -> bool:
        return self._receiver.version == "0.3"

    async def _as_of(self, update: Update, seq: int) -> JsonObject:
        """The task with this state."""
        fields = update.body["statusUpdate"]
        status = fields.get("status") if isinstance(fields, dict) else None
        task = submitted(self._task)
        task["status"] = status
        if update.state == "completed":
            # Read after the callback was claimed, so it has ended.
            artifacts = (await self._tasks.answer(self._task)).artifacts
        else:
            artifacts = await self._updates.partial_artifacts(seq)
        if artifacts:
            task["artifacts"] = [*artifacts]
        return task

    def _request(self, update_id: str, body: JsonObject, now: Instant) -> CallbackRequest:
        receiver = self._receiver
        content = encode(body)
        headers = {"Content-Type": "application/json", "A2A-Version": receiver.version}
        if receiver.token is not None:
            headers[TOKEN_HEADER] = receiver.token
        if receiver.scheme is not None and receiver.credentials is not None:
            headers["Authorization"] = f"{receiver.scheme} {receiver.credentials}"
        if receiver.secret is not None:
            message_id = f"{self._task.record.id}/{update_id}"
            headers |= signed_headers([receiver.secret], message_id, now, content)
        return CallbackRequest(url=receiver.url, headers=headers, body=content)
