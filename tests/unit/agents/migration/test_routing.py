"""Which side of an agent a run calls."""

from __future__ import annotations

import pytest

from trunkline.agents.migration import MigrationStage, MigrationState, TargetEndpoint
from trunkline.agents.migration.routing import MigrationHistory, endpoint_for, is_in_share, is_shadowed
from trunkline.id_generation import new_id

TARGET = TargetEndpoint(url="http://new.example/agent", protocol="jsonrpc-2.0")
RUNS = [new_id() for _ in range(10_000)]


def state(stage: MigrationStage, percent: float = 0, target: TargetEndpoint = TARGET) -> MigrationState:
    return MigrationState(stage=stage, percent=percent, target=target)


@pytest.mark.parametrize("percent", [0, 0.5, 10, 50, 99, 100])
def test_a_canary_takes_about_its_share_of_the_runs(percent: float) -> None:
    moved = sum(endpoint_for(state("canary", percent), run, "agent") == "new" for run in RUNS)
    # Five standard deviations: once in two million times by chance.
    spread = 5 * (len(RUNS) * percent / 100 * (1 - percent / 100)) ** 0.5
    assert abs(moved - len(RUNS) * percent / 100) <= spread


def test_a_run_of_a_smaller_share_is_of_every_greater_one() -> None:
    shares = [0, 1, 5, 20, 50, 80, 100]
    for run in RUNS[:500]:
        among = [is_in_share(share, run, "agent") for share in shares]
        assert among == sorted(among)


def test_one_run_is_not_the_first_to_try_every_agent() -> None:
    tried = [sum(is_in_share(10, run, f"agent-{n}") for n in range(20)) for run in RUNS[:500]]
    assert max(tried) < 12


@pytest.mark.parametrize(
    ("stage", "side"),
    [
        ("planned", "old"),
        ("shadow", "old"),
        ("canary", "new"),
        ("cut_over", "new"),
        ("finished", "new"),
        ("rolled_back", "old"),
    ],
)
def test_the_stage_decides_whether_source_or_target_answers(stage: MigrationStage, side: str) -> None:
    assert endpoint_for(state(stage, 100), RUNS[0], "agent") == side


def test_only_a_share_of_the_runs_is_shadowed_and_only_in_that_stage() -> None:
    assert is_shadowed(state("shadow", 100), RUNS[0], "agent")
    assert not is_shadowed(state("shadow", 0), RUNS[0], "agent")
    assert not is_shadowed(state("canary", 100), RUNS[0], "agent")


def test_a_run_keeps_the_state_that_it_began_with_whatever_comes_later() -> None:
    history = MigrationHistory()

    def sides(version: int) -> list[str]:
        revision = history.at(version)
        assert revision is not None
        return [endpoint_for(revision.state, run, "agent") for run in RUNS[:200]]

    history.add(3, "A", state("canary", 10))
    before = sides(5)
    history.add(7, "A", state("canary", 60))
    history.add(9, "A", state("rolled_back"))
    assert sides(5) == before != sides(7)
    assert set(sides(9)) == {"old"}
    assert history.at(2) is None
    found = [revision.event for version in (3, 6, 7, 8, 9, 99) if (revision := history.at(version))]
    assert found == [3, 3, 7, 7, 9, 9]


def test_a_trial_lasts_from_the_first_canary_to_the_end_of_the_cutover() -> None:
    history = MigrationHistory()
    other = TargetEndpoint(url="http://other.example", protocol="jsonrpc-2.0")
    for event, change in enumerate(
        (
            state("shadow", 10),
            state("canary", 10),
            state("canary", 50),
            state("cut_over"),
            state("rolled_back"),
            state("canary", 10),
            state("canary", 10, other),
        ),
        start=1,
    ):
        history.add(event, "A", change)
    rollouts = [
        revision.rollout_since for event in range(1, 8) if (revision := history.at(event)) is not None
    ]
    assert rollouts == [0, 2, 2, 2, 0, 6, 7]
