"""Steps with `cache`: an output of an equal step, or the work for all that wait for it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import OTHER_RUN, MachineHarness

from trunkline.machine.inputs import RunRequested
from trunkline.machine.state import CacheStage

ONE = """
name: w
steps:
  a:
    agent: A
    cache: {key: "${ input.q }", ttl: 2h}
    retry: {max_attempts: 2, on: [any], first_delay: 1s, jitter: false}
"""


def stage(play: MachineHarness, step: str = "a") -> CacheStage | None:
    use = play.step(step).call_details.cache
    return None if use is None else use.stage


def play_of(workflow: str = ONE, **given: str) -> MachineHarness:
    play = MachineHarness(workflow, {"q": "one", **given})
    play.start()
    return play


def digest_of(workflow: str, **given: str) -> str:
    play = play_of(workflow, **given)
    return play.claims[0].digest


def test_a_cached_output_completes_the_step_without_a_call() -> None:
    play = play_of()
    assert (play.statuses, play.tasks, play.state.status) == ({"a": "WAITING"}, [], "RUNNING")
    play.look_up("found", {"n": 1})
    assert (play.state.status, play.output, play.tasks) == ("COMPLETED", {"n": 1}, [])
    use = play.step("a").call_details.cache
    assert use is not None
    assert (use.stage, use.run_id, use.step) == ("used", OTHER_RUN, "other")
    assert (play.kept, play.released, play.timers) == ([], [], {})


def test_without_an_output_the_step_does_the_work_and_keeps_it() -> None:
    play = play_of()
    play.look_up("lead")
    assert (len(play.tasks), stage(play)) == (1, "leading")
    play.succeed("a", {"n": 1})
    assert [(each.output, each.ttl, each.agent) for each in play.kept] == [
        (b'{"n":1}', timedelta(hours=2), "A")
    ]
    assert play.released == []


def test_the_lead_stays_over_a_retry_and_ends_with_the_failure() -> None:
    play = play_of()
    play.look_up("lead")
    play.fail("a")
    assert play.released == []
    play.pass_time(timedelta(seconds=1))
    assert (len(play.tasks), len(play.claims)) == (2, 1)
    play.fail("a")
    assert [(each.step, each.digest) for each in play.released] == [("a", play.claims[0].digest)]
    assert play.kept == []


def test_a_step_that_need_not_wait_keeps_its_output_too() -> None:
    play = play_of()
    play.look_up("alone")
    play.succeed("a", 1)
    assert [each.output for each in play.kept] == [b"1"]


def test_a_step_that_waits_for_a_person_lets_others_do_the_work() -> None:
    play = play_of()
    play.look_up("lead")
    play.ask("a")
    assert (len(play.released), stage(play)) == (1, "left")
    play.reply("a", "This one")
    play.succeed("a", 1)
    assert (len(play.claims), len(play.kept), len(play.released)) == (1, 1, 1)


def test_a_paused_step_gives_up_the_lead_and_asks_again() -> None:
    play = play_of()
    play.pause()
    play.look_up("lead")
    assert (play.tasks, len(play.released)) == ([], 1)
    play.resume()
    assert [claim.number for claim in play.claims] == [1, 2]
    play.look_up("found", 1)
    assert play.state.status == "COMPLETED"


def test_an_old_answer_changes_nothing() -> None:
    play = play_of()
    first = play.claims[0]
    play.pass_time(timedelta(minutes=5))
    assert [claim.number for claim in play.claims] == [1, 2]
    play.claims.append(first)
    play.look_up("lead")
    assert play.tasks == []


def test_a_waiting_step_asks_again_when_it_is_woken() -> None:
    play = play_of()
    play.look_up("again")
    assert [claim.number for claim in play.claims] == [1, 2]
    assert list(play.timers) == ["cache/a/2"]


def test_cancelling_a_waiting_step_gives_up_its_claim() -> None:
    play = play_of()
    play.cancel()
    assert (play.state.status, len(play.released), play.timers) == ("CANCELLED", 1, {})


def test_the_deadline_runs_while_the_step_waits_for_an_output() -> None:
    play = play_of(ONE + "    deadline: 1m\n")
    play.pass_time(timedelta(minutes=1))
    error = play.step("a").error
    assert error is not None
    assert (error.code, len(play.released)) == ("deadline_exceeded", 1)


def test_a_key_that_cannot_be_evaluated_fails_the_step() -> None:
    play = MachineHarness(ONE, {})
    play.start()
    error = play.step("a").error
    assert error is not None
    assert (error.code, play.claims) == ("expression_failed", [])


@pytest.mark.parametrize("output", ["x" * 1024 * 1024, {"files": [{"blob": {"id": "1"}}]}])
def test_a_large_output_and_one_with_files_are_not_kept(output: object) -> None:
    play = play_of()
    play.look_up("lead")
    play.succeed("a", output)  # pyright: ignore[reportArgumentType] - it is JSON
    assert (play.kept, len(play.released)) == ([], 1)


def test_each_item_has_an_output_of_its_own() -> None:
    workflow = """
name: w
steps:
  a: {agent: A, for_each: "${ ['x', 'y', 'x'] }", input: "${ item }", cache: {key: "${ item }"}}
"""
    play = play_of(workflow)
    digests = [claim.digest for claim in play.claims]
    assert [claim.step for claim in play.claims] == ["a[0]", "a[1]", "a[2]"]
    assert digests[0] == digests[2] != digests[1]


def test_a_block_is_reused_as_a_whole() -> None:
    workflow = """
name: w
steps:
  b:
    cache: {key: "${ input.q }"}
    steps: {x: {agent: A}}
"""
    play = play_of(workflow)
    play.look_up("found", "done")
    assert (play.runs, play.output) == ([], "done")


def test_a_repeated_block_asks_once_for_all_rounds() -> None:
    workflow = """
name: w
steps:
  b:
    cache: {key: "${ input.q }"}
    repeat: {until: "steps.x.output.ok"}
    steps: {x: {agent: A}}
"""
    play = play_of(workflow)
    play.look_up("lead")
    assert len(play.runs) == 1
    assert len(play.claims) == 1


def test_which_steps_share_an_output() -> None:
    step = 'name: {name}\nsteps: {{{step}: {{agent: {agent}, cache: {{key: "${{ input.q }}", scope: {scope}}}}}}}'

    def digest(scope: str, *, name: str = "w", agent: str = "A", key: str = "one", called: str = "a") -> str:
        return digest_of(step.format(name=name, step=called, agent=agent, scope=scope), q=key)

    for scope in ("workflow", "agent", "global"):
        assert digest(scope) == digest(scope, called="b") != digest(scope, key="two")
    assert digest("workflow") not in {digest("workflow", name="v"), digest("workflow", agent="B")}
    assert digest("agent") == digest("agent", name="v") != digest("agent", agent="B")
    assert digest("global") == digest("global", name="v", agent="B")
    assert len({digest(scope) for scope in ("workflow", "agent", "global")}) == 3


def test_an_output_that_was_checked_otherwise_is_another_one() -> None:
    assert digest_of(ONE) != digest_of(ONE + "    output_schema: {type: object}\n")


def test_an_input_that_a_person_gives_is_used() -> None:
    play = MachineHarness(ONE, {"q": "one"})
    play.take(RunRequested(inputs={"a": msgspec.Raw(b'"mine"')}))
    assert (play.claims, len(play.tasks)) == ([], 1)
