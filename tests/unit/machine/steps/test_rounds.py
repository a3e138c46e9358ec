"""Steps that are repeated: what begins a round, what each costs, and what ends them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from tests.unit.machine.machine_harness import RUN, START, MachineHarness, error

from trunkline.jsontypes import Json, decode, encode
from trunkline.machine.evolve import restore
from trunkline.machine.inputs import CancelRequested, ChildEnded, RoundEnd
from trunkline.machine.state import RunState
from trunkline.machine.turn import Turn
from trunkline.workflow import previous

BLOCK = """
name: w
steps:
  a: {agent: A}
  r:
    needs: [a]
    repeat: {until: steps.z.output.good, max_rounds: %s}
    %s
    steps: {z: {agent: Z, input: "${ [input.x, round, previous.steps.z.output] }"}}
"""


def started(rounds: int = 3, more: str = "") -> MachineHarness:
    play = MachineHarness(BLOCK % (rounds, more), {"x": 7})
    play.start()
    play.succeed("a")
    return play


def end_round(play: MachineHarness, output: Json = None, *, done: bool = False) -> Turn:
    step = {"status": "COMPLETED", "output": output, "error": None}
    round_ = RoundEnd(done, msgspec.Raw(encode({previous("z"): step})))
    run = play.run_of("r").run_id
    return play.take(ChildEnded("r", run, "COMPLETED", msgspec.Raw(encode(output)), round=round_))


def input_of_last_round(play: MachineHarness) -> Json:
    return decode(play.run_of("r").input)


def test_the_first_round_has_none_before_it() -> None:
    nothing = {"status": "PENDING", "output": None, "error": None}
    assert input_of_last_round(started()) == {"input": {"x": 7}, "round": 1, "previous.steps.z": nothing}


def test_each_round_gets_the_one_before_it_and_a_run_of_its_own() -> None:
    play = started()
    end_round(play, "one")
    end_round(play, "two")
    given = input_of_last_round(play)
    assert isinstance(given, dict)
    assert (given["round"], given["previous.steps.z"]) == (
        3,
        {"status": "COMPLETED", "output": "two", "error": None},
    )
    assert len({run.run_id for run in play.runs}) == 3
    assert (play.step("r").round, play.step("r").attempts) == (3, 1)


def test_a_round_that_is_good_ends_the_step() -> None:
    play = started()
    end_round(play, "one")
    end_round(play, "two", done=True)
    assert (play.step("r").status, play.step("r").output) == ("COMPLETED", b'"two"')


def test_after_the_last_round_the_step_fails() -> None:
    play = started(rounds=2)
    end_round(play)
    end_round(play)
    failure = play.step("r").error
    assert failure is not None
    assert (play.state.status, failure.code) == ("FAILED", "max_rounds")
    assert len(play.runs) == 2


def test_the_ten_thousandth_round_costs_as_much_as_the_tenth() -> None:
    play = started(rounds=10_000)
    sizes: dict[int, tuple[int, int, int, int]] = {}
    for number in range(1, 10_000):
        turn = end_round(play, "the same")
        step = play.step("r")
        digits = len(str(number + 1)) - 1
        written = len(msgspec.msgpack.encode(step)) - len(step.input or b"")
        sizes[number] = (len(turn.events), len(turn.effects), len(step.input or b"") - digits, written)
    # A number above 127 takes two more bytes in the encoding of this test.
    assert sizes[9_999][:3] == sizes[10][:3]
    assert sizes[9_999][3] - sizes[10][3] <= 2
    assert len(play.state.steps) == 2
    assert play.timers == {}


def test_a_paused_run_begins_no_round() -> None:
    play = started()
    play.pause()
    end_round(play)
    assert (len(play.runs), play.step("r").status) == (1, "PENDING")
    play.resume()
    assert (len(play.runs), play.step("r").status) == (2, "RUNNING")


def test_a_run_that_ends_begins_no_round() -> None:
    play = started()
    play.cancel()
    assert [item for _, item in play.told] == [CancelRequested()]
    end_round(play)
    assert (play.state.status, play.step("r").status, len(play.runs)) == ("CANCELLED", "CANCELLED", 1)
    assert "StepRoundEnded" not in play.history


def test_between_two_rounds_there_is_a_delay() -> None:
    play = MachineHarness(BLOCK.replace("max_rounds: %s", "delay: 10s") % "", {"x": 7})
    play.start()
    play.succeed("a")
    end_round(play)
    waiting = play.step("r").waiting_for
    assert waiting is not None
    assert (play.step("r").status, waiting.kind, len(play.runs)) == ("WAITING", "time", 1)
    play.pass_time(timedelta(seconds=10))
    assert (play.step("r").status, len(play.runs)) == ("RUNNING", 2)


def test_cancelling_ends_the_delay() -> None:
    play = MachineHarness(BLOCK.replace("max_rounds: %s", "delay: 10s") % "", {"x": 7})
    play.start()
    play.succeed("a")
    end_round(play)
    play.cancel()
    assert (play.state.status, play.timers) == ("CANCELLED", {})


def test_a_deadline_covers_all_rounds() -> None:
    play = started(rounds=100, more="deadline: 1m")
    for _ in range(3):
        play.pass_time(timedelta(seconds=20))
        if play.step("r").status == "RUNNING":
            end_round(play)
    failure = play.step("r").error
    assert failure is not None
    assert failure.code == "deadline_exceeded"
    assert play.timers == {}


def test_a_run_that_is_read_back_between_two_rounds_goes_on() -> None:
    play = started()
    play.pause()
    end_round(play, "one")
    stored = [
        msgspec.msgpack.decode(msgspec.msgpack.encode(step), type=type(step))
        for step in play.state.steps.values()
    ]
    state = RunState(
        id=RUN,
        workflow=play.state.workflow,
        correlation_id="c-1",
        input=play.state.input,
        created_at=START,
        status="PAUSED",
        paused=True,
        seq=play.state.seq,
    )
    restore(state, stored)
    play.state = state
    play.resume()
    given = input_of_last_round(play)
    assert isinstance(given, dict)
    assert (given["round"], len(play.runs)) == (2, 2)


def test_the_end_of_a_round_travels_unchanged() -> None:
    item = ChildEnded("r", RUN, "COMPLETED", round=RoundEnd(True, msgspec.Raw(b'{"a":1}')))
    assert msgspec.json.decode(msgspec.json.encode(item), type=ChildEnded) == item


def test_a_delay_that_is_over_in_a_paused_run_begins_no_round() -> None:
    play = MachineHarness(BLOCK.replace("max_rounds: %s", "delay: 10s") % "", {"x": 7})
    play.start()
    play.succeed("a")
    end_round(play)
    play.pause()
    play.pass_time(timedelta(seconds=10))
    assert (play.step("r").status, len(play.runs)) == ("PENDING", 1)
    play.resume()
    assert (play.step("r").status, len(play.runs)) == ("RUNNING", 2)


def test_what_is_due_in_a_round_has_a_key_of_its_own() -> None:
    """The input queue takes each key once."""
    more = "retry: {max_attempts: 2, first_delay: 1s, jitter: false}"
    play = MachineHarness(BLOCK.replace("max_rounds: %s", "delay: 10s") % more, {"x": 7})
    play.start()
    play.succeed("a")
    keys: list[str] = []
    for _ in range(3):
        play.end_run("r", "FAILED", error=error("agent_task_failed"))
        keys += play.timers
        play.pass_time(timedelta(seconds=1))
        end_round(play)
        keys += play.timers
        play.pass_time(timedelta(seconds=10))
    assert len(keys) == 6
    assert len({*keys}) == 6
