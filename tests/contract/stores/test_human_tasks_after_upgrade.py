"""Human tasks that were open before the store could list them are listed after its upgrade."""

from __future__ import annotations

import pytest
from tests.contract.backends import OpenStore
from tests.contract.samples import insert, new_run, run_id, transition, write
from tests.contract.stores.test_waiting_steps_after_upgrade import url

from trunkline.clock import Instant
from trunkline.machine.state import HumanTask, StepState, WaitingFor
from trunkline.stores.port.human_tasks import ListedTaskFilter
from trunkline.stores.schema import downgrade_schema, upgrade_schema

pytestmark = pytest.mark.anyio

__all__ = ["url"]


def asking(
    name: str, text: str = "T", *, assignees: tuple[str, ...] = (), due: int | None = None
) -> StepState:
    task = HumanTask(title="T", assignees=assignees, due=None if due is None else Instant(due))
    waiting = WaitingFor(kind="person", text=text, since=Instant(1), human_task=task)
    return StepState(name=name, status="WAITING", attempts=1, waiting_for=waiting)


async def test_an_open_task_is_in_the_inboxes_of_its_assignees_after_an_upgrade(
    open_store: OpenStore, url: str
) -> None:
    steps = [
        asking("a", assignees=("ada", 'su"pport')),
        asking("b", due=5),
        # No JSON type of a database takes it; the upgrade goes on without.
        asking("c", "Which\u0000?", assignees=("\u0000",)),
        StepState(name="d", status="RUNNING", attempts=1),
    ]
    async with open_store() as store:
        await insert(store, new_run(1))
        await write(store, transition(1, steps=steps))
    await downgrade_schema(url, "0028")
    await upgrade_schema(url)
    async with open_store() as store:
        for where, names in (
            (ListedTaskFilter(people=("ada",)), ["a"]),
            (ListedTaskFilter(people=('su"pport',)), ["a"]),
            (ListedTaskFilter(overdue_at=Instant(9)), ["b"]),
        ):
            found = await store.human_tasks.page(where, limit=9)
            assert [(step.place.run_id, step.place.step) for step in found] == [
                (run_id(1), name) for name in names
            ]
