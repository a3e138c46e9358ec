"""
Whatever the workflow and whatever happens in whichever order: the promises hold after every turn.

Hypothesis looks for the smallest case that breaks one; the simulation goes deeper, each failure replays from its seed.
`TRUNKLINE_EXPLORE=10000` looks further than a test run has time for.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.machine.generated_workflows import T, generate_workflow
from tests.unit.machine.run_simulation import RunSimulation

from trunkline.machine.inputs import Input, RunRequested
from trunkline.workflow import CompiledWorkflow

EXPLORE = int(os.environ.get("TRUNKLINE_EXPLORE", "0"))
SEEDS = EXPLORE or 3_000
ROUNDS = 120
TURNS_AFTER_THE_END = 3

profile = settings(
    max_examples=EXPLORE or 200,
    derandomize=not EXPLORE,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def workflows(draw: st.DrawFn) -> CompiledWorkflow:
    def pick(options: Sequence[T], /) -> T:
        return draw(st.sampled_from(options))

    return generate_workflow(pick)


# Each number chooses among what can happen at its time.
SCRIPTS = st.lists(st.integers(0, 2**16), min_size=25, max_size=50)


def perform(world: RunSimulation, script: Iterable[int]) -> None:
    world.turn([RunRequested()])
    waiting: list[Input] = []
    turns_left = TURNS_AFTER_THE_END
    for number in script:
        choice, alone = divmod(number, 4)
        item = world.happen(choice)
        waiting += [] if item is None else [item]
        # Now and then several inputs meet in one turn.
        if alone:
            world.turn(waiting)
            waiting = []
            turns_left -= world.play.state.is_final
            if not turns_left:
                return
    world.turn(waiting)


def bring_to_an_end(world: RunSimulation) -> None:
    for _ in range(200):
        if world.play.state.is_final:
            return
        world.turn([world.help()])
    raise AssertionError(f"The run is {world.play.state.status} after 200 more turns: {world.play.statuses}")


@given(workflows(), SCRIPTS)
@profile
def test_the_promises_hold_after_every_turn(workflow: CompiledWorkflow, script: list[int]) -> None:
    perform(RunSimulation(workflow), script)


@given(workflows(), SCRIPTS)
@profile
def test_a_run_whose_every_call_is_answered_in_the_end_ends(
    workflow: CompiledWorkflow, script: list[int]
) -> None:
    world = RunSimulation(workflow)
    perform(world, script)
    bring_to_an_end(world)


def simulate(seed: int) -> RunSimulation:
    dice = random.Random(seed)
    world = RunSimulation(generate_workflow(dice.choice))
    perform(world, (dice.getrandbits(24) for _ in range(ROUNDS)))
    bring_to_an_end(world)
    return world


def test_the_promises_hold_in_long_simulations() -> None:
    seen: set[str] = set()
    for seed in range(SEEDS):
        try:
            seen.update(simulate(seed).play.history)
        except Exception as exc:
            exc.add_note(f"This was simulate({seed}).")
            raise
    # A simulation that no longer reaches something proves nothing about it.
    assert len(seen) == 37, sorted(seen)
