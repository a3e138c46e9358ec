"""Texts and ids from agents and callers that PostgreSQL itself would reject."""

from __future__ import annotations

import msgspec
import pytest
from tests.contract.bridges import ME, answer, claim
from tests.contract.samples import insert, item, key_of, new_run, run_id, task, transition, write

from trunkline.ids import RunId
from trunkline.machine.state import StepState
from trunkline.stores.base import QueuedInput, QueuedTask, Store, TaskAnswer, TaskKey
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

STRANGE = "\x00 \x1a \x1a0000 \ud800 \udfff ü 漢字 😀"


async def test_texts_that_postgresql_refuses_come_back_as_they_were(one: Store, clock: FakeClock) -> None:
    await insert(one, new_run(1), new_run(2))
    step = StepState(name="a", context_id=STRANGE, remote_task_id=STRANGE, protocol=STRANGE)
    await write(one, transition(1, steps=[step]), transition(2, steps=[StepState(name="a")]))
    found = await one.runs.get(run_id(1))
    assert found is not None
    assert found[1] == [step]
    strange = msgspec.structs.replace(task(1), task_id=f"{run_id(1)}/{STRANGE.replace('/', '')}/0")
    plain = msgspec.structs.replace(task(2), agent="\x00")
    async with one.transaction() as tx:
        await tx.tasks.put([QueuedTask(strange, b'{"task_id":"x"}'), QueuedTask(plain, b'{"task_id":"y"}')])
    claimed = {each.key: each for each in await claim(one)}
    assert set(claimed) == {key_of(strange), key_of(plain)}
    answer_ = TaskAnswer(
        key=key_of(strange), epoch=1, remote_task_id=STRANGE, poll_at=clock.now(), deadline=None
    )
    assert await answer(one, answer_) == set()
    (asked,) = await claim(one)
    assert (asked.key, asked.remote_task_id) == (key_of(strange), STRANGE)


@pytest.mark.parametrize("text", ["", "no uuid", "018F0000-0000-7000-8000-000000000001", "\x00", "x" * 9_000])
async def test_an_id_that_cannot_be_one_is_not_found(one: Store, text: str) -> None:
    await insert(one, new_run(1))
    assert await one.runs.get(RunId(text)) is None
    assert await one.runs.status(RunId(text)) is None
    assert await one.runs.events(RunId(text), after=0, limit=10) == []
    assert await one.exchanges.page(RunId(text), after=0, limit=10) == []
    assert await one.agents.get(text) is None
    assert await one.workflows.get(text) is None
    assert await one.dead_letters.get(text) is None
    async with one.transaction() as tx:
        assert await tx.runs.unknown([RunId(text), run_id(1)]) == {RunId(text)}
        assert await tx.runs.load([RunId(text)]) == []
        await tx.input_queue.put([QueuedInput(RunId(text), "k", b""), item(1, "k")])
        assert [run.run_id for run in await tx.input_queue.claim_runs(10)] == [run_id(1)]
        assert await tx.dead_letters.take(text) is None
        assert not await tx.agents.delete(text)
        assert await tx.keys.revoke(text) is None
        assert await tx.tasks.stop(ME, [TaskKey(text, 1)]) == []
