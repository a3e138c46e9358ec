"""Comments of people on inbox items: for each other, and no part of the answer."""

from __future__ import annotations

from trunkline.clock import Clock
from trunkline.errors import Conflict, Finding, Invalid, NotFound
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.runs.inbox import Inbox, parse_item_id
from trunkline.stores.base import Store
from trunkline.stores.port.human_tasks import HumanTaskKey, TaskComment

MAX_COMMENTS = 100
MAX_COMMENT = 10_000


class TaskComments:
    def __init__(self, store: Store, inbox: Inbox, clock: Clock) -> None:
        self._store = store
        self._inbox = inbox
        self._clock = clock

    async def add(self, item: str, text: str, *, by: str | None) -> TaskComment:
        """To an open item. Raises `NotFound`, `Invalid` and `Conflict`."""
        entry = await self._inbox.get(item)
        if not text.strip() or len(text) > MAX_COMMENT:
            message = f"must have 1 to {MAX_COMMENT:,} characters, but it has {len(text):,}"
            if len(text) <= MAX_COMMENT:
                message = "is empty"
            raise Invalid(f"The comment {message}.", findings=[Finding(path="text", message=message)])
        comment = TaskComment(at=self._clock.now(), by=by, text=text)
        key = HumanTaskKey(entry.run_id, entry.step, entry.attempt, entry.replies)
        async with self._store.transaction() as tx:
            if not await tx.human_tasks.comment(key, comment, most=MAX_COMMENTS):
                raise Conflict(
                    f"The item {entry.id} has {MAX_COMMENTS} comments, which is the limit.",
                    fix="Answer it, or discuss it elsewhere.",
                )
            await tx.audit.put([audit_entry("run", "comment", entry.run_id, step=entry.step)])
        return comment

    async def list(self, item: str) -> list[TaskComment]:
        """Oldest first, also of an item that is closed, as long as its run is kept. Raises `NotFound`."""
        key = parse_item_id(item)
        if key is None:
            entry = await self._inbox.get(item)
            key = HumanTaskKey(entry.run_id, entry.step, entry.attempt, entry.replies)
        found = await self._store.human_tasks.comments(key)
        if not found and await self._store.runs.status(key.run_id) is None:
            raise NotFound(
                f"There is no item {item} in the inbox.", fix="List the waiting steps: trunkline inbox list."
            )
        return found
