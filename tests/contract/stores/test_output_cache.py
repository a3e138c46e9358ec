"""What every store promises about cached outputs, and the claims on those that do not exist yet."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, insert, new_run, run_id, transition, write

from trunkline.clock import after
from trunkline.stores.base import NewRun, ParentStep, Store
from trunkline.stores.port.agents.output_cache import CacheSize, ClaimAnswers, KeptOutput, OutputClaim
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

ROOM = 1_000_000


def kept(
    number: int, digest: str, output: bytes = b'"x"', *, ttl: int = 60, agent: str = "A", workflow: str = "w"
) -> KeptOutput:
    return KeptOutput(
        digest=digest,
        output=output,
        run_id=run_id(number),
        step="a",
        workflow=workflow,
        agent=agent,
        at=NOW,
        expires_at=after(NOW, timedelta(seconds=ttl)),
    )


def claim_of(number: int, digest: str = "d", *, asked: int = 1, step: str = "a") -> OutputClaim:
    return OutputClaim(run_id(number), step, asked, digest)


async def keep(store: Store, *outputs: KeptOutput) -> list[OutputClaim]:
    async with store.transaction() as tx:
        await tx.output_cache.lock([each.digest for each in outputs])
        return await tx.output_cache.keep(outputs)


async def claim(store: Store, *claims: OutputClaim, max_bytes: int = ROOM) -> ClaimAnswers:
    async with store.transaction() as tx:
        await tx.output_cache.lock([each.digest for each in claims])
        return await tx.output_cache.claim(claims, max_bytes=max_bytes)


async def release(store: Store, *claims: OutputClaim) -> list[OutputClaim]:
    async with store.transaction() as tx:
        return await tx.output_cache.release(claims)


async def evict(store: Store, *, outputs: int = 100, max_bytes: int = ROOM) -> int:
    async with store.transaction() as tx:
        return await tx.output_cache.evict(max_outputs=outputs, max_bytes=max_bytes)


async def test_of_several_claims_one_leads_and_all_get_its_output(store: Store) -> None:
    await insert(store, *map(new_run, (1, 2, 3)))
    first = await claim(store, claim_of(1), claim_of(2))
    assert (first.leads, first.found, first.alone) == ([claim_of(1)], [], [])
    assert await claim(store, claim_of(3)) == ClaimAnswers(found=[], again=[], leads=[], alone=[])

    assert await keep(store, kept(1, "d", b'"out"')) == [claim_of(1), claim_of(2), claim_of(3)]
    answers = await claim(store, claim_of(2, asked=2), claim_of(3, "e"))
    assert [(each.run_id, output.output) for each, output in answers.found] == [(run_id(2), b'"out"')]
    assert answers.found[0][1] == kept(1, "d", b'"out"')
    assert answers.leads == [claim_of(3, "e")]


async def test_the_next_one_leads_when_the_first_is_gone(store: Store) -> None:
    await insert(store, *map(new_run, (1, 2, 3)))
    await claim(store, claim_of(1), claim_of(2), claim_of(3))

    assert await release(store, claim_of(2)) == []
    assert await release(store, claim_of(1, asked=0)) == [claim_of(3)]
    assert await release(store, claim_of(1)) == []
    assert await release(store, claim_of(3)) == []


async def test_who_asks_again_keeps_the_lead_or_the_place(store: Store) -> None:
    await insert(store, *map(new_run, (1, 2)))
    await claim(store, claim_of(1), claim_of(2))

    assert (await claim(store, claim_of(1, asked=2))).leads == [claim_of(1, asked=2)]
    assert (await claim(store, claim_of(2, asked=2))).leads == []
    assert await release(store, claim_of(1)) == [claim_of(2, asked=2)]


async def test_a_claim_ends_with_its_run(store: Store) -> None:
    await insert(store, *map(new_run, (1, 2)))
    await claim(store, claim_of(1))
    assert (await claim(store, claim_of(2))).leads == []

    assert await write(store, transition(1, status="FAILED", finished_at=NOW)) == set()
    assert (await claim(store, claim_of(2, asked=2))).leads == [claim_of(2, asked=2)]


async def test_a_step_inside_one_that_works_on_an_output_does_not_wait(store: Store) -> None:
    await insert(store, *map(new_run, (1, 4)))
    await claim(store, claim_of(1, "outer", step="block"))
    await claim(store, claim_of(4, "inner"))
    await insert(
        store,
        _child(2, ParentStep(run_id(1), "block")),
        _child(3, ParentStep(run_id(2), "b")),
        _child(5, ParentStep(run_id(1), "other")),
    )

    answers = await claim(store, claim_of(3, "inner"), claim_of(5, "inner"))

    assert (answers.alone, answers.leads) == ([claim_of(3, "inner")], [])
    assert await release(store, claim_of(4, "inner")) == [claim_of(5, "inner")]


def _child(number: int, parent: ParentStep) -> NewRun:
    return msgspec.structs.replace(new_run(number), parent=parent)


async def test_an_output_ends_with_its_time(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1), new_run(2))
    await keep(store, kept(1, "d", ttl=60), kept(1, "e", ttl=120))
    clock.advance(timedelta(seconds=60))

    assert await store.output_cache.size() == CacheSize(1, 3)
    assert (await claim(store, claim_of(2))).leads == [claim_of(2)]
    assert await evict(store) == 1
    assert await evict(store) == 0


async def test_what_expires_first_makes_room(store: Store) -> None:
    await insert(store, new_run(1))
    await keep(store, *(kept(1, f"{number}", b"x" * 10, ttl=100 - number) for number in range(5)))

    assert await evict(store, outputs=4) == 1
    assert await evict(store, max_bytes=25) == 2
    assert await store.output_cache.size() == CacheSize(2, 20)
    await insert(store, new_run(2))
    assert [each.digest for each, _ in (await claim(store, claim_of(2, "0"))).found] == ["0"]


async def test_an_output_is_deleted_with_its_run(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await keep(store, kept(1, "d", ttl=100_000))
    assert await write(store, transition(1, status="COMPLETED", finished_at=NOW)) == set()
    clock.advance(timedelta(hours=1))

    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(after(NOW, timedelta(minutes=1)), 10) == 1
    assert await store.output_cache.size() == CacheSize(0, 0)


async def test_an_answer_has_a_limit(store: Store) -> None:
    await insert(store, *map(new_run, (1, 2, 3)))
    await keep(store, kept(1, "d", b"x" * 60), kept(1, "e", b"y" * 60))

    answers = await claim(store, claim_of(2, "d"), claim_of(3, "e"), max_bytes=100)

    assert [each for each, _ in answers.found] == [claim_of(2, "d")]
    assert answers.again == [claim_of(3, "e")]


async def test_outputs_are_cleared_by_workflow_and_agent(store: Store) -> None:
    await insert(store, new_run(1))
    await keep(store, kept(1, "d", agent="A"), kept(1, "e", agent="B"), kept(1, "f", workflow="other"))
    async with store.transaction() as tx:
        assert await tx.output_cache.clear(workflow="other") == 1
        assert await tx.output_cache.clear(agent="B") == 1
        assert await tx.output_cache.clear(workflow="other", agent="A") == 0
        assert await tx.output_cache.clear() == 1


async def test_of_claims_at_the_same_time_one_leads(store: Store) -> None:
    await insert(store, *(new_run(number) for number in range(1, 11)))
    answers = await asyncio.gather(*(claim(store, claim_of(number)) for number in range(1, 11)))
    assert sum(len(each.leads) for each in answers) == 1
