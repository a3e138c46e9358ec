"""What bridges do to a store: they hold a lease, claim, answer and stop, and take over claims of stopped bridges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta

from tests.contract.samples import NOW

from trunkline.agents import NO_OPTIONS, Agent, AgentOptions, AuthType
from trunkline.clock import Instant, after
from trunkline.id_generation import new_id
from trunkline.stores.base import (
    ClaimedTask,
    ReclaimedTasks,
    StoppedTask,
    Store,
    TaskAnswer,
    TaskKey,
)

ME = "me"
DEAD = "an earlier process"
LEASE = timedelta(seconds=15)
LATER = after(NOW, timedelta(seconds=30))


async def register(
    store: Store,
    name: str,
    max_concurrency: int = 100,
    *,
    auth_type: AuthType = "none",
    options: AgentOptions = NO_OPTIONS,
) -> Agent:
    """An agent without a secret."""
    agent = Agent(
        id=new_id(),
        name=name,
        url="http://a",
        created_at=NOW,
        updated_at=NOW,
        max_concurrency=max_concurrency,
        auth_type=auth_type,
        options=options,
    )
    async with store.transaction() as tx:
        await tx.agents.insert(agent)
    return agent


async def hold(store: Store, owner: str, lasts: timedelta = LEASE) -> None:
    async with store.transaction() as tx:
        await tx.leases.hold(owner, lasts)


async def release(store: Store, owner: str) -> None:
    async with store.transaction() as tx:
        await tx.leases.release(owner)


async def claim(
    store: Store, owner: str = ME, limit: int = 100, pools: Collection[str | None] | None = None
) -> list[ClaimedTask]:
    """As a bridge that lives; the dead one dies right after."""
    await hold(store, owner)
    async with store.transaction() as tx:
        claimed = await tx.tasks.claim(owner, limit, pools)
    if owner == DEAD:
        await release(store, DEAD)
    return claimed


async def answer(store: Store, *answers: TaskAnswer, owner: str = ME) -> set[TaskKey]:
    async with store.transaction() as tx:
        return await tx.tasks.write_answers(owner, answers)


async def stop(store: Store, *keys: TaskKey, owner: str = ME) -> list[StoppedTask]:
    async with store.transaction() as tx:
        return await tx.tasks.stop(owner, keys)


async def reclaim(store: Store, owner: str = ME) -> ReclaimedTasks:
    async with store.transaction() as tx:
        return await tx.tasks.reclaim(owner)


def done(claimed: ClaimedTask) -> TaskAnswer:
    return TaskAnswer(key=claimed.key, epoch=claimed.epoch)


def taken(claimed: ClaimedTask, poll_at: Instant = LATER, polls: int = 1) -> TaskAnswer:
    """The agent has taken the task, and is asked again at `poll_at`."""
    return TaskAnswer(
        key=claimed.key,
        epoch=claimed.epoch,
        poll_at=poll_at,
        remote_task_id="remote-1",
        deadline=after(NOW, timedelta(minutes=5)),
        polls=polls,
    )


def agents_of(claimed: list[ClaimedTask]) -> Counter[str]:
    return Counter(each.task.agent for each in claimed)


def numbers(claimed: list[ClaimedTask]) -> set[str]:
    return {each.task.run_id for each in claimed}
