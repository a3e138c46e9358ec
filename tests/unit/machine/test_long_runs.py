"""The ten-thousandth step costs what the first one cost: counted, not timed."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Generic, TypeVar

import pytest
from tests.unit.machine.machine_harness import MachineHarness, fresh_state

from trunkline.machine.evolve import restore
from trunkline.machine.state import StepState
from trunkline.workflow import (
    CompiledStep,
    CompiledWorkflow,
    ForEach,
    StepDefinition,
    WorkflowDefinition,
    compile_workflow,
)

STEPS = 10_000
# An answer touches its own step and the one that it sets free, a few times each.
MOST_LOOKUPS_A_TURN = 40
V = TypeVar("V")


class CountedDict(dict[str, V], Generic[V]):
    """Counts how often one entry is looked up, and how often somebody goes through all of them."""

    lookups = 0
    walks = 0

    def __getitem__(self, key: str, /) -> V:
        self.lookups += 1
        return super().__getitem__(key)

    def get(self, key: str, default: V | None = None, /) -> V | None:  # pyright: ignore[reportIncompatibleMethodOverride] - the one form that the machine uses
        self.lookups += 1
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()

    def keys(self) -> KeysView[str]:  # pyright: ignore[reportIncompatibleMethodOverride] - dict's own view type cannot be named
        self.walks += 1
        return super().keys()

    def values(self) -> ValuesView[V]:  # pyright: ignore[reportIncompatibleMethodOverride] - as above
        self.walks += 1
        return super().values()

    def items(self) -> ItemsView[str, V]:  # pyright: ignore[reportIncompatibleMethodOverride] - as above
        self.walks += 1
        return super().items()


def chain_of(steps: int) -> CompiledWorkflow:
    names = [f"s{number}" for number in range(steps)]
    return compile_workflow(
        WorkflowDefinition(
            name="chain",
            steps={
                name: StepDefinition(name=name, agent="A", needs=(before,) if before else ())
                for name, before in zip(names, [None, *names], strict=False)
            },
        )
    )


@pytest.fixture(scope="module")
def long_chain() -> CompiledWorkflow:
    return chain_of(STEPS)


def test_a_turn_in_a_run_of_ten_thousand_steps_touches_a_handful_of_them(
    long_chain: CompiledWorkflow,
) -> None:
    plans = CountedDict[CompiledStep](long_chain.steps)
    long_chain.steps = plans
    play = MachineHarness(long_chain)
    states = CountedDict[StepState]()
    play.state.steps = states
    play.start()
    for number in range(STEPS - 1):
        plans.lookups = plans.walks = states.lookups = states.walks = 0
        turn = play.succeed(f"s{number}")
        assert list(turn.changed) == [f"s{number}", f"s{number + 1}"]
        assert (len(turn.events), len(turn.effects)) == (2, 1)
        assert (plans.walks, states.walks) == (0, 0)
        assert plans.lookups + states.lookups <= MOST_LOOKUPS_A_TURN
    play.succeed(f"s{STEPS - 1}", "end")
    assert (play.state.status, play.output, play.state.seq) == ("COMPLETED", "end", 2 * STEPS + 2)


def test_a_run_of_ten_thousand_steps_is_read_again_by_looking_at_each_once(
    long_chain: CompiledWorkflow,
) -> None:
    steps = [StepState(name=f"s{number}", status="COMPLETED", attempts=1) for number in range(STEPS - 1)]
    state = fresh_state(long_chain)
    state.status = "RUNNING"
    restore(state, steps)
    assert (state.unfinished, list(state.ready)) == (1, [f"s{STEPS - 1}"])


def test_a_turn_in_a_loop_of_ten_thousand_items_touches_a_handful_of_them() -> None:
    loop = StepDefinition(
        name="s", agent="A", for_each=ForEach("${ input.items }"), input={"text": "${ item }"}
    )
    play = MachineHarness(
        compile_workflow(WorkflowDefinition(name="loop", steps={"s": loop})), {"items": list(range(STEPS))}
    )
    states = CountedDict[StepState]()
    play.state.steps = states
    play.start()
    begun = loop.for_each.at_once if loop.for_each is not None else 0
    for number in range(STEPS - begun):
        states.lookups = states.walks = 0
        turn = play.succeed(f"s[{number}]", number)
        assert list(turn.changed) == [f"s[{number}]", f"s[{number + begun}]"]
        assert (len(turn.events), len(turn.effects)) == (2, 1)
        assert states.walks == 0
        assert states.lookups <= MOST_LOOKUPS_A_TURN
    for number in range(STEPS - begun, STEPS):
        play.succeed(f"s[{number}]", number)
    assert (play.state.status, play.output) == ("COMPLETED", list(range(STEPS)))
