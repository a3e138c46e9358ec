"""What is found of the agents that steps may call, with every store."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import msgspec
import pytest
from tests.contract.bridges import ME, register
from tests.contract.samples import NOW, insert, new_run, queue, state_of, task, woken

from trunkline.agents import AgentOptions, BreakerPolicy, Dialect, RateLimit
from trunkline.agents.call_limits.breaker import CallEnd
from trunkline.agents.cards import CardDetails
from trunkline.clock import after
from trunkline.executor.candidate_lookup import MAX_OFFERED, CandidateLookup
from trunkline.machine.candidates import Candidate, choose
from trunkline.machine.effects import FindCandidates
from trunkline.machine.inputs import CandidatesFound, decode_input
from trunkline.machine.turn import Turn
from trunkline.publish_options import SkillOptions
from trunkline.stores.base import RecordedCallEnd, Store
from trunkline.stores.port.agents.activity import AgentMinute, minute_of
from trunkline.workflow import Select

pytestmark = pytest.mark.anyio

TRANSLATES = AgentOptions(skills=("translate",))
_numbers = count(1_000)


def asked(step: str = "a", *, select: Select = "first", **more: object) -> FindCandidates:
    effect = FindCandidates(step=step, number=1, skill="translate", select=select)
    return msgspec.structs.replace(effect, **more)


async def find(store: Store, lookup: CandidateLookup, *effects: FindCandidates) -> list[CandidatesFound]:
    """What a run gets that asks for all this in one turn."""
    number = next(_numbers)
    await insert(store, new_run(number))
    turn = Turn(state_of(number), NOW)
    turn.effects += effects
    async with store.transaction() as tx:
        assert await lookup.write(tx, [turn])
    (run,) = [each for each in await woken(store) if each.run_id == turn.state.id]
    items = [decode_input(item) if isinstance(item, bytes) else item for _, item in run.items]
    return [item for item in items if isinstance(item, CandidatesFound)]


async def found_by(store: Store, effect: FindCandidates) -> list[Candidate]:
    (found,) = await find(store, CandidateLookup(store), effect)
    return [*found.candidates]


async def names(store: Store, effect: FindCandidates) -> list[str]:
    return [each.agent for each in await found_by(store, effect)]


async def test_agents_are_found_by_skill_tags_and_name(store: Store) -> None:
    await register(store, "B", options=AgentOptions(skills=("translate",), tags=("fast", "eu")))
    await register(store, "A", options=TRANSLATES)
    await register(store, "Other", options=AgentOptions(skills=("sing",), tags=("fast",)))
    assert await names(store, asked()) == ["A", "B"]
    assert await names(store, asked(tags=("fast", "eu"))) == ["B"]
    assert await names(store, asked(without=("A",))) == ["B"]
    assert await names(store, asked(skill=None, tags=("fast",), agent="Other")) == ["Other"]
    assert await names(store, asked(skill="unheard of")) == []


async def test_agents_are_found_by_the_skills_of_their_cards(store: Store) -> None:
    agent = await register(store, "Polyglot")
    card = CardDetails(
        input_modes=("text/*",),
        skills=(
            SkillOptions(id="translate", name="t", description="d"),
            SkillOptions(id="look", name="l", description="d", input_modes=("image/png",)),
        ),
    )
    dialect = Dialect(
        protocol="a2a-1.0", url="http://a", evidence="card", decided_at=NOW, skills=("translate", "look"), details=card
    )  # fmt: skip
    async with store.transaction() as tx:
        await tx.agents.update(msgspec.structs.replace(agent, dialect=dialect), agent.version)
    assert await names(store, asked(input_modes=("text/plain",))) == ["Polyglot"]
    assert await names(store, asked(input_modes=("image/png",))) == []
    assert await names(store, asked(skill="look", input_modes=("image/png",))) == ["Polyglot"]


async def test_an_agent_without_a_card_accepts_text_and_json(store: Store) -> None:
    await register(store, "A", options=TRANSLATES)
    assert await names(store, asked(input_modes=("text/plain", "application/json"))) == ["A"]
    assert await names(store, asked(input_modes=("audio/wav",))) == []


async def test_only_repeatable_agents_are_found_for_a_hedge(store: Store) -> None:
    await register(store, "A", options=TRANSLATES)
    await register(store, "B", options=AgentOptions(skills=("translate",), repeatable=True))
    assert await names(store, asked(repeatable=True)) == ["B"]


async def test_the_facts_come_from_record_queue_and_limits(store: Store) -> None:
    policy = BreakerPolicy(failures=1, open_ms=60_000)
    options = AgentOptions(
        skills=("translate",), cost=0.5, repeatable=True, breaker=policy, rate=RateLimit(per_second=1, burst=1)
    )  # fmt: skip
    await register(store, "A", max_concurrency=7, options=options)
    await queue(store, task(1, agent="A"))
    async with store.transaction() as tx:
        await tx.agents.record_calls([RecordedCallEnd("A", policy, CallEnd(failed=True, error="e"))])
        await tx.activity.record(
            ME,
            [
                AgentMinute(
                    agent="A", minute=minute_of(NOW), calls=4, failures=4, total_ms=40, longest_ms=10
                ),
                AgentMinute(
                    agent="A", minute=minute_of(NOW) - 10, calls=5, failures=1, total_ms=360, longest_ms=90
                ),
            ],
        )
    (candidate,) = await found_by(store, asked())
    assert candidate == Candidate(
        agent="A",
        cost=0.5,
        busy=1,
        slots=7,
        calls=4,
        failures=4,
        average_ms=100,
        breaker_open=True,
        retry_at=after(NOW, timedelta(minutes=1)),
        repeatable=True,
    )


async def test_steps_that_begin_at_once_are_spread(store: Store) -> None:
    for name in "AB":
        await register(store, name, max_concurrency=2, options=TRANSLATES)
    found = await find(store, CandidateLookup(store), *(asked(step, select="least_busy") for step in "abcd"))
    chosen = [choose(each.candidates, "least_busy").chosen for each in found]
    assert sorted(each.agent for each in chosen if each is not None) == ["A", "A", "B", "B"]
    # Without turns, only the count of what was chosen a moment ago spreads them.
    found = await find(store, CandidateLookup(store), *(asked(step, select="first") for step in "abcd"))
    chosen = [choose(each.candidates, "first").chosen for each in found]
    assert [each.agent for each in chosen if each is not None] == ["A", "A", "B", "B"]


async def test_agents_take_turns(store: Store) -> None:
    for name in "ABC":
        await register(store, name, options=TRANSLATES)
    lookup, chosen = CandidateLookup(store), list[str]()
    for _ in range(4):
        (found,) = await find(store, lookup, asked(select="round_robin"))
        chosen.append(found.candidates[0].agent)
    assert chosen == ["A", "B", "C", "A"]


async def test_of_many_agents_the_best_are_offered(store: Store) -> None:
    for number in range(MAX_OFFERED + 5):
        options = AgentOptions(skills=("translate",), cost=float(100 - number))
        await register(store, f"A{number:02}", options=options)
    (found,) = await find(store, CandidateLookup(store), asked(select="cheapest"))
    best = choose(found.candidates, "cheapest").chosen
    assert best is not None
    assert (len(found.candidates), found.others, best.agent) == (MAX_OFFERED, 5, f"A{MAX_OFFERED + 4}")


async def test_turns_that_ask_for_nothing_read_nothing(store: Store) -> None:
    async with store.transaction() as tx:
        assert not await CandidateLookup(store).write(tx, [Turn(state_of(1), NOW)])
