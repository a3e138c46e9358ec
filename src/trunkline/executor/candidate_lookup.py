"""
Looks up the agents that a step may call, and what is known of them, in the transaction that decides the step.

What is known goes into the run's input queue, so the machine chooses by facts that are stored. Choices of one
transaction count one another's calls, which no store has yet. Which of several equal agents is next is in memory: every
process takes turns for itself.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

import msgspec

from trunkline.agents import Agent, AgentOptions
from trunkline.agents.call_limits.breaker import calls_allowed
from trunkline.agents.call_limits.token_bucket import refilled, whole_tokens
from trunkline.clock import Instant
from trunkline.ids import number_of
from trunkline.machine.candidates import HEALTH_MINUTES, Candidate, choose, rank
from trunkline.machine.effects import FindCandidates
from trunkline.machine.inputs import CandidatesFound
from trunkline.machine.turn import Turn
from trunkline.stores.base import AgentLoad, InputsQueued, QueuedInput, Store, Transaction
from trunkline.stores.port.agents.activity import AgentMinute, minute_of

# Of one step: each is several rows to read, and an entry in the step's history.
MAX_CANDIDATES = 100
MAX_OFFERED = 20

_AGENTS_AT_ONCE = 500
# How long a registry that is larger than that is not read again.
_REGISTRY_FRESH_SECONDS = 1.0
# Kinds of choices for which turns are counted.
_MAX_TURNS = 1_000
# How far back calls count for the average duration.
_AVERAGE_MINUTES = 15
# What an agent is taken to accept whose card does not say.
_DEFAULT_MODES = ("text/plain", "application/json")


class _OfferedAgent(NamedTuple):
    """As much of an agent as a choice needs."""

    name: str
    skills: frozenset[str]
    tags: frozenset[str]
    # By skill; None: all others.
    input_modes: Mapping[str | None, tuple[str, ...]]
    slots: int
    options: AgentOptions

    def offers(self, wanted: FindCandidates) -> bool:
        return (
            (wanted.skill is None or wanted.skill in self.skills)
            and self.tags.issuperset(wanted.tags)
            and (wanted.agent is None or wanted.agent == self.name)
            and self.name not in wanted.without
            and (self.options.repeatable or not wanted.repeatable)
            and self._accepts(wanted)
        )

    def _accepts(self, wanted: FindCandidates) -> bool:
        modes = self.input_modes.get(wanted.skill) or self.input_modes.get(None) or _DEFAULT_MODES
        return all(any(_covers(mode, each) for mode in modes) for each in wanted.input_modes)


class _Facts(NamedTuple):
    """What the store knows of the agents that are asked for."""

    loads: Mapping[str, AgentLoad]
    minutes: Mapping[str, Sequence[AgentMinute]]


class CandidateLookup:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._registry: list[_OfferedAgent] = []
        self._read_again_at = 0.0
        self._turns: OrderedDict[tuple[object, ...], int] = OrderedDict()

    async def write(self, tx: Transaction, turns: Sequence[Turn]) -> bool:
        """Queues what these turns have asked for; False: nothing."""
        asked = [
            (turn, effect) for turn in turns for effect in turn.effects if isinstance(effect, FindCandidates)
        ]
        if not asked:
            return False
        offered = await self._offered()
        matching = [_matching(offered, effect) for _, effect in asked]
        facts = await self._facts({each.name for found, _ in matching for each in found}, tx.now)
        chosen: defaultdict[str, int] = defaultdict(int)
        items: list[QueuedInput] = []
        for (turn, effect), (found, others) in zip(asked, matching, strict=True):
            candidates = [_candidate(each, facts, chosen[each.name], tx.now) for each in found]
            item = self._found(effect, candidates, others)
            best = choose(item.candidates, effect.select).chosen
            if best is not None:
                chosen[best.agent] += 1
            items.append(QueuedInput(turn.state.id, _key(turn, effect), item))
        await tx.input_queue.put(items)
        await tx.notify(InputsQueued(wakes=number_of(items[0].run_id)))
        return True

    async def _offered(self) -> list[_OfferedAgent]:
        """All agents by name."""
        if monotonic() < self._read_again_at:
            return self._registry
        found: list[_OfferedAgent] = []
        after: str | None = None
        while True:
            page = await self._store.agents.page(limit=_AGENTS_AT_ONCE, after=after)
            found += map(_offered, page)
            if len(page) < _AGENTS_AT_ONCE:
                break
            after = page[-1].name
        if len(found) >= _AGENTS_AT_ONCE:
            self._registry, self._read_again_at = found, monotonic() + _REGISTRY_FRESH_SECONDS
        return found

    async def _facts(self, names: Collection[str], now: Instant) -> _Facts:
        if not names:
            return _Facts({}, {})
        minutes: defaultdict[str, list[AgentMinute]] = defaultdict(list)
        for each in await self._store.activity.minutes(minute_of(now) - _AVERAGE_MINUTES, names):
            minutes[each.agent].append(each)
        return _Facts(await self._store.agents.loads(names), minutes)

    def _found(self, effect: FindCandidates, candidates: list[Candidate], others: int) -> CandidatesFound:
        if effect.select != "first" and candidates:
            turn = self._next_turn(effect) % len(candidates)
            candidates = candidates[turn:] + candidates[:turn]
        if len(candidates) > MAX_OFFERED:
            others += len(candidates) - MAX_OFFERED
            best = {each.agent for each in rank(candidates, effect.select)[:MAX_OFFERED]}
            candidates = [each for each in candidates if each.agent in best]
        return CandidatesFound(effect.step, effect.number, tuple(candidates), others, effect.hedge)

    def _next_turn(self, effect: FindCandidates) -> int:
        key = effect.skill, effect.tags, effect.input_modes, effect.select
        turn = self._turns.pop(key, 0)
        # What takes the place of another call is not a choice of its own.
        self._turns[key] = turn if effect.without else turn + 1
        while len(self._turns) > _MAX_TURNS:
            self._turns.popitem(last=False)
        return turn


def _matching(offered: Sequence[_OfferedAgent], wanted: FindCandidates) -> tuple[list[_OfferedAgent], int]:
    """Those that fit, by name, and how many more there are than one step considers."""
    found = [each for each in offered if each.offers(wanted)]
    return found[:MAX_CANDIDATES], max(0, len(found) - MAX_CANDIDATES)


def _key(turn: Turn, effect: FindCandidates) -> str:
    # The number of the transition is unique, and a step is looked up once in it.
    return f"candidates/{effect.step}/{turn.state.version}"


def _offered(agent: Agent) -> _OfferedAgent:
    details = None if agent.dialect is None else agent.dialect.details
    modes: dict[str | None, tuple[str, ...]] = {}
    if details is not None:
        modes = {skill.id: skill.input_modes for skill in details.skills if skill.input_modes}
        modes[None] = details.input_modes
    options = agent.options
    return _OfferedAgent(
        name=agent.name,
        skills=frozenset(agent.skills),
        tags=frozenset(options.tags),
        input_modes=modes,
        slots=agent.max_concurrency,
        # Without what only says where it is.
        options=msgspec.structs.replace(
            options, tags=(), skills=(), endpoint_override=None, allow_card_origin=()
        ),
    )


def _covers(offered: str, wanted: str) -> bool:
    """`image/*` covers `image/png`."""
    if offered.endswith("/*"):
        return offered == "*/*" or wanted.startswith(offered[:-1])
    return offered.lower() == wanted.lower()


def _candidate(agent: _OfferedAgent, facts: _Facts, chosen: int, now: Instant) -> Candidate:
    """`chosen`: how often it was chosen in this transaction."""
    load, minutes = facts.loads[agent.name], facts.minutes.get(agent.name, ())
    options, state = agent.options, load.state
    is_open = options.breaker is not None and calls_allowed(state.breaker, options.breaker, now) == 0
    is_limited = (
        options.rate is not None and whole_tokens(refilled(state.bucket, options.rate, now)) <= chosen
    )
    recent = [each for each in minutes if each.minute > minute_of(now) - HEALTH_MINUTES]
    succeeded = sum(each.calls - each.failures for each in minutes)
    return Candidate(
        agent=agent.name,
        cost=options.cost,
        busy=load.in_flight + load.queued + chosen,
        slots=agent.slots,
        is_limited=is_limited,
        calls=sum(each.calls for each in recent),
        failures=sum(each.failures for each in recent),
        # What a success takes, with the failures on the way to it.
        average_ms=round(sum(each.total_ms for each in minutes) / succeeded) if succeeded else None,
        breaker_open=is_open,
        retry_at=state.breaker.retry_at if is_open else None,
        repeatable=options.repeatable,
    )
