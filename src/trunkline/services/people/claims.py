"""
Claims of inbox items: a person says that they work on one, so that others leave it to them.

The machine decides whose claim counts, as it does for answers. A claim changes nothing else: due times, escalations
and timeouts go on, and the run continues where it can.
"""

from __future__ import annotations

from trunkline.errors import Conflict, NotAllowed, Unavailable
from trunkline.id_generation import new_id
from trunkline.ids import question_id
from trunkline.machine.inputs import Input, TaskClaimed, TaskReleased
from trunkline.machine.state import HumanTask, StepState
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.people.answers import put_and_watch
from trunkline.services.people.rights import PeopleGroups, check_person, claimed
from trunkline.services.runs.inbox import Inbox, InboxEntry
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.queries import RunQueries
from trunkline.stores.base import QueuedInput

_NO_TASK = HumanTask()


class TaskClaims:
    def __init__(self, queries: RunQueries, inbox: Inbox, intake: Intake, groups: PeopleGroups) -> None:
        self._queries = queries
        self._inbox = inbox
        self._intake = intake
        self._groups = groups

    async def claim(self, item: str, *, by: str | None) -> InboxEntry:
        """Raises `NotFound`, `NotAllowed` if the person cannot answer, and `Conflict` if another one has claimed it."""
        entry = await self._inbox.get(item)
        if by is None:
            raise NotAllowed(
                f"The item {entry.id} cannot be claimed, because the request does not say who claims it.",
                fix="Send the request with an API key.",
            )
        task = entry.waiting_for.human_task or _NO_TASK
        record, state = await self._queries.find_step(entry.run_id, entry.step)
        check_person(record, state, task, by, self._groups)
        if task.claimed_by != by:
            await self._put(entry, TaskClaimed(entry.step, entry.attempt, entry.replies, by), "claim", by)
        found = await self._inbox.get(entry.id)
        now = found.waiting_for.human_task or _NO_TASK
        if now.claimed_by != by:
            raise claimed(record, state, now)
        return found

    async def release(self, item: str, *, by: str | None, is_admin: bool) -> InboxEntry:
        """Admins release the items of others, too. Raises `NotFound`, `NotAllowed` and `Conflict`."""
        entry = await self._inbox.get(item)
        task = entry.waiting_for.human_task or _NO_TASK
        if task.claimed_by is None:
            raise Conflict(
                f"The item {entry.id} is not claimed.", fix=f"See its state: trunkline inbox show {entry.id}."
            )
        if task.claimed_by != by and not is_admin:
            raise NotAllowed(
                f"The item {entry.id} is claimed by {task.claimed_by}, and only {task.claimed_by} or an admin can "
                "release it.",
                fix=f"Ask {task.claimed_by} or an admin to release it.",
            )
        released = TaskReleased(entry.step, entry.attempt, entry.replies, task.claimed_by)
        await self._put(entry, released, "release", task.claimed_by)
        return await self._inbox.get(entry.id)

    async def _put(self, entry: InboxEntry, item: Input, action: str, claimant: str) -> None:
        def is_open(state: StepState) -> bool:
            return entry.id == question_id(entry.run_id, state.name, state.attempts, state.replies)

        def is_applied(state: StepState) -> bool:
            task = None if state.waiting_for is None else state.waiting_for.human_task
            now = None if task is None else task.claimed_by
            return not is_open(state) or (now is not None if action == "claim" else now != claimant)

        queued = QueuedInput(entry.run_id, f"{action}/{new_id()}", item, is_once=True)
        audit = audit_entry("run", action, entry.run_id, step=entry.step, claimed_by=claimant)
        if not await put_and_watch(self._queries, self._intake, queued, audit, entry.step, is_applied):
            raise Unavailable(f"No executor has applied the {action} of {entry.id} yet. It is stored.")
