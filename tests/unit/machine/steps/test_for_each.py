"""Steps that call their agent once for each item of a list."""

from __future__ import annotations

from collections import deque
from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import MachineHarness
from tests.unit.machine.machine_harness import error as failure

from trunkline.jsontypes import Json, decode, encode
from trunkline.machine.events import StepSkipped, StepStarted
from trunkline.machine.evolve import restore
from trunkline.machine.inputs import RunRequested, decode_input, encode_input


def each(more: str = "", options: str = "", items: Json = None, top: str = "") -> MachineHarness:
    play = MachineHarness(
        f"name: w\n{top}\nsteps:\n  s: {{agent: A, for_each: {{items: '${{ input.items }}'{options}}}{more}}}\n"
        "  after: {agent: B, input: '${ steps.s.output }', when: steps.s.status == 'COMPLETED'}",
        {"items": ["x", "y", "z"] if items is None else items, "topic": "owls"},
    )
    play.start()
    return play


def called(play: MachineHarness) -> list[str]:
    return [task.step for task in play.tasks]


def error_of(play: MachineHarness, step: str = "s") -> str:
    error = play.step(step).error
    assert error is not None
    return f"{error.code}: {error.message}"


ONCE = ", retry: {max_attempts: 1}"


def test_each_item_is_a_call_of_its_own_and_the_outputs_keep_the_order_of_the_items() -> None:
    play = each()
    assert called(play) == ["s[0]", "s[1]", "s[2]"]
    assert [task.input_data for task in play.tasks] == ["x", "y", "z"]
    assert [task.task_id.partition("/")[2] for task in play.tasks] == ["s[0]/0", "s[1]/0", "s[2]/0"]
    for name in ("s[2]", "s[0]", "s[1]"):
        assert play.statuses["s"] == "RUNNING"
        play.succeed(name, name.upper())
    assert play.statuses["s"] == "COMPLETED"
    assert play.task("after").input_data == ["S[0]", "S[1]", "S[2]"]


def test_item_and_index_can_be_read_with_everything_else() -> None:
    play = each(
        ", input: {what: '${ item }', at: '${ index }', text: '${ input.topic }: ${ string(index + 1) }'}"
    )
    assert play.task("s[1]").input_data == {"what": "y", "at": 1, "text": "owls: 2"}


def test_items_that_run_are_stopped_after_a_restart_too() -> None:
    play = each(options=", limit: 2", more=", retry: {max_attempts: 2, on: [any]}")
    play.fail("s[0]")
    play.fail("s[1]")
    stored = [msgspec.structs.replace(step) for step in play.state.steps.values()]
    play.state = msgspec.structs.replace(
        play.state,
        for_each={},
        ready=deque(),
        in_flight=0,
        retrying=0,
        waiting_for_time_or_event=0,
        unfinished=0,
    )
    restore(play.state, stored)
    play.pass_time(timedelta(seconds=2))
    play.fail("s[0]")
    assert [play.step(f"s[{index}]").status for index in (0, 1)] == ["FAILED", "CANCELLED"]


def test_an_empty_list_completes_at_once_with_an_empty_list() -> None:
    play = each(items=[])
    assert (play.statuses["s"], play.task("after").input_data) == ("COMPLETED", [])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("text", 'must return a list, but it returned "text"'),
        ([0] * 10_001, "has 10001 items, but the limit is 10000"),
    ],
    ids=["text", "too-many"],
)
def test_what_is_no_list_or_too_long_a_list_fails_the_step_with_the_reason(items: Json, message: str) -> None:
    play = each(items=items)
    assert play.state.status == "FAILED"
    assert message in error_of(play)


def test_only_so_many_items_are_worked_on_at_once() -> None:
    play = each(options=", limit: 2", items=list(range(5)))
    assert called(play) == ["s[0]", "s[1]"]
    play.fail("s[0]", "agent_timeout")
    assert called(play) == ["s[0]", "s[1]"]
    play.succeed("s[1]")
    assert called(play) == ["s[0]", "s[1]", "s[2]"]


def test_sequential_items_follow_one_another() -> None:
    play = each(options=", mode: sequential")
    for done in range(3):
        assert called(play) == [f"s[{index}]" for index in range(done + 1)]
        play.succeed(f"s[{done}]")
    assert called(play)[-1] == "after"


def test_items_count_for_the_limit_of_the_run() -> None:
    play = each(top="max_parallel: 2")
    assert called(play) == ["s[0]", "s[1]"]
    play.succeed("s[0]")
    assert called(play) == ["s[0]", "s[1]", "s[2]"]


def test_an_item_has_its_own_attempts() -> None:
    play = each()
    play.fail("s[1]", "agent_timeout")
    assert (play.step("s[1]").status, list(play.timers)) == ("WAITING", ["retry/s[1]/1"])
    play.pass_time(timedelta(minutes=2))
    assert [task.attempt for task in play.calls("s[1]")] == [1, 2]
    for name in ("s[0]", "s[1]", "s[2]"):
        play.succeed(name)
    assert play.statuses["s"] == "COMPLETED"


def test_the_first_failed_item_stops_the_others_and_fails_the_step() -> None:
    play = each(ONCE, ", limit: 2", items=list(range(9)))
    play.fail("s[1]")
    assert (play.state.status, error_of(play)) == (
        "FAILED",
        "agent_task_failed: Item 1: It was agent_task_failed.",
    )
    error = play.step("s").error
    assert (error is not None and error.cause_item) == 1
    assert (play.step("s[0]").status, called(play)) == ("CANCELLED", ["s[0]", "s[1]"])
    assert [stop.task_id for stop in play.stops] == [play.task("s[0]").task_id]


def test_the_command_of_a_failed_item_names_the_item() -> None:
    play = each(ONCE, ", limit: 1")
    play.fail("s[0]", "agent_http_error")
    error = play.step("s").error
    assert error is not None
    assert error.fix_command == f"trunkline runs wire {play.state.id} 's[0]'"
    assert error.fix.endswith(f": {error.fix_command}.")


def test_the_step_s_own_on_error_decides_what_its_failure_means() -> None:
    play = each(f"{ONCE}, on_error: continue", ", limit: 1")
    play.fail("s[0]")
    assert (play.state.status, play.statuses) == ("COMPLETED", {"s": "FAILED", "after": "SKIPPED"})
    assert called(play) == ["s[0]"]


def test_with_continue_a_failed_item_is_null_in_the_output() -> None:
    play = each(ONCE, ", on_error: continue")
    play.succeed("s[0]", 1)
    play.fail("s[1]")
    play.succeed("s[2]", 3)
    assert play.task("after").input_data == [1, None, 3]


def test_with_collect_every_place_says_how_its_item_ended() -> None:
    play = each(f"{ONCE}, when: \"item != 'z'\"", ", on_error: collect")
    play.succeed("s[0]", 1)
    play.fail("s[1]")
    assert play.task("after").input_data == [
        {"item": "x", "status": "COMPLETED", "output": 1},
        {
            "item": "y",
            "status": "FAILED",
            "error": {"code": "agent_task_failed", "message": "It was agent_task_failed."},
        },
        {"item": "z", "status": "SKIPPED", "output": None},
    ]


def test_a_condition_on_the_item_chooses_items_and_any_other_the_step() -> None:
    play = each(", when: index != 1")
    assert called(play) == ["s[0]", "s[2]"]
    play.succeed("s[0]", 0)
    play.succeed("s[2]", 2)
    assert play.task("after").input_data == [0, None, 2]
    play = each(", when: input.topic == 'cats'")
    assert [event.step for event in play.events if isinstance(event, StepSkipped)] == ["s", "after"]


def test_an_item_whose_expression_fails_is_a_failed_item() -> None:
    play = each(", input: '${ item.name }'", ", on_error: continue", items=[{"name": "n"}, {}])
    assert called(play) == ["s[0]"]
    play.succeed("s[0]", 1)
    assert play.task("after").input_data == [1, None]


def test_a_paused_run_begins_no_item_and_takes_results() -> None:
    play = each(options=", limit: 1")
    play.pause()
    play.succeed("s[0]")
    assert called(play) == ["s[0]"]
    play.resume()
    assert called(play) == ["s[0]", "s[1]"]


def test_cancelling_stops_the_items_under_way() -> None:
    play = each(options=", limit: 2")
    play.cancel()
    assert len(play.stops) == 2
    for name in ("s[0]", "s[1]"):
        play.answer(play.task(name), "cancelled")
    assert (play.state.status, play.step("s").status, called(play)) == (
        "CANCELLED",
        "CANCELLED",
        ["s[0]", "s[1]"],
    )
    assert play.timers == {}


def test_the_deadline_of_the_step_is_that_of_all_its_items() -> None:
    play = each(", deadline: 1m")
    play.succeed("s[0]")
    play.pass_time(timedelta(minutes=1))
    assert (play.state.status, error_of(play).partition(":")[0]) == ("FAILED", "deadline_exceeded")
    assert (len(play.stops), play.timers) == (2, {})


def test_a_run_that_waits_for_a_person_about_an_item_says_which() -> None:
    play = each(items=["x"])
    play.ask("s[0]")
    assert play.state.status == "WAITING"
    play.reply("s[0]", "That one.")
    assert play.state.status == "RUNNING"
    play.succeed("s[0]")
    assert play.statuses["s"] == "COMPLETED"


def test_items_in_parallel_have_a_conversation_each() -> None:
    play = each(options=", limit: 1")
    play.succeed("s[0]", context_id="c-0")
    assert (play.task("s[1]").context_id, play.state.contexts) == (None, {})
    play = each(options=", mode: sequential")
    play.succeed("s[0]", context_id="c-0")
    assert play.task("s[1]").context_id == "c-0"


def test_an_item_goes_on_in_its_own_conversation() -> None:
    play = each(", retry: {max_attempts: 2, on: [any]}", ", limit: 1")
    play.answer(play.task("s[0]"), "error", error=failure("agent_task_failed"), context_id="c-0")
    play.pass_time(timedelta(minutes=2))
    assert play.task("s[0]").context_id == "c-0"
    play.succeed("s[0]", context_id="c-0")
    assert play.task("s[1]").context_id is None


def test_a_retried_run_keeps_the_completed_items_and_their_list() -> None:
    play = MachineHarness(each().state.workflow, {"items": ["other"]})
    request = RunRequested({"s[1]": msgspec.Raw(encode("kept"))}, {"s": msgspec.Raw(encode(["x", "y", "z"]))})
    play.take(decode_input(encode_input(request)))
    assert called(play) == ["s[0]", "s[2]"]
    play.succeed("s[0]", 0)
    play.succeed("s[2]", 2)
    assert play.task("after").input_data == [0, "kept", 2]


def test_a_join_drops_a_loop_with_all_its_items() -> None:
    play = MachineHarness(
        "{name: w, steps: {s: {agent: A, for_each: [1, 2]}, b: {agent: B},"
        " last: {agent: Z, needs: [s, b], join: any}}}"
    )
    play.start()
    play.succeed("b")
    assert play.statuses == {"s": "CANCELLED", "b": "COMPLETED", "last": "RUNNING"}
    assert [play.step(name).status for name in ("s[0]", "s[1]")] == ["CANCELLED", "CANCELLED"]
    assert len(play.stops) == 2


def test_a_loop_over_many_items_looks_at_one_at_a_time() -> None:
    """Every turn writes what has changed and no more, however many items there are."""
    play = each(options=", limit: 3", items=list(range(2_000)))
    for index in range(1_997):
        turn = play.succeed(f"s[{index}]", index)
        assert list(turn.changed) == [f"s[{index}]", f"s[{index + 3}]"]
        assert [type(event) for event in turn.events][-1] is StepStarted
    for index in range(1_997, 2_000):
        play.succeed(f"s[{index}]", index)
    assert play.step("s").output is not None
    assert decode(play.step("s").output or b"") == list(range(2_000))
