"""Which calls name secrets: those of the definition, and never what arrived as data."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.jsontypes import Json, encode
from trunkline.machine.inputs import ReplyGiven
from trunkline.messages import AgentTask, ReplyMessage

SECRET: Json = {"$secret": "slack-bot"}
ONE = '{name: w, steps: {s: {agent: A, input: {token: {$secret: slack-bot}, given: "${ input }"}}}}'


@pytest.mark.parametrize(
    "given",
    [
        {"$secret": "stolen"},
        {"token": {"$secret": "stolen"}},
        [{"$secret": "stolen"}],
        '{"$secret": "stolen"}',
    ],
)
def test_a_call_names_the_secrets_of_the_definition_and_nothing_that_came_as_data(given: Json) -> None:
    play = MachineHarness(ONE, run_input=given)
    play.start()
    task = play.task("s")
    assert task.secrets == {"/token": "slack-bot"}
    assert task.input_data == {"token": SECRET, "given": given}


@pytest.mark.parametrize(
    "step_input", ['"${ input }"', '{t: "${ input }"}', '["${ input }"]', '"${ steps.before.output }"']
)
def test_data_of_the_shape_of_a_secret_stays_data(step_input: str) -> None:
    play = MachineHarness(
        f"{{name: w, steps: {{before: {{agent: B}}, s: {{agent: A, needs: [before], input: {step_input}}}}}}}",
        run_input=SECRET,
    )
    play.start()
    play.succeed("before", SECRET)
    assert (play.task("s").secrets, play.task("s").told_secrets) == ({}, [])
    assert b"$secret" in encode(play.task("s").input_data)


def test_the_run_input_as_a_whole_is_data() -> None:
    play = MachineHarness("{name: w, steps: {s: {agent: A}}}", run_input=SECRET)
    play.start()
    assert (play.task("s").secrets, play.task("s").input_data) == ({}, SECRET)


def test_the_next_attempt_names_the_same_secrets() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.fail("s", "agent_http_error", http_status=503)
    play.pass_time(timedelta(seconds=5))
    first, second = play.calls("s")
    assert first.secrets == second.secrets == {"/token": "slack-bot"}
    assert first.input_data == second.input_data


def test_a_reply_is_data_and_the_secret_that_the_agent_has_is_still_to_be_hidden() -> None:
    play = MachineHarness(ONE)
    play.start()
    play.ask("s")
    play.take(ReplyGiven("s", ReplyMessage(data={"token": SECRET, "given": 1})))
    task = play.calls("s")[-1]
    assert task.secrets == {}
    assert task.told_secrets == ["slack-bot"]
    assert isinstance(task.input_data, dict)
    assert task.input_data["data"] == {"token": SECRET, "given": 1}


def test_a_reply_of_the_shape_of_the_input_is_not_filled_in() -> None:
    play = MachineHarness("{name: w, steps: {s: {agent: A, input: {data: {$secret: slack-bot}}}}}")
    play.start()
    play.ask("s")
    play.take(ReplyGiven("s", ReplyMessage(data=SECRET)))
    assert play.calls("s")[-1].input_data == {"data": SECRET}
    assert play.calls("s")[-1].secrets == {}


def test_what_one_step_tells_an_agent_is_hidden_in_every_step_that_calls_it() -> None:
    play = MachineHarness("""
name: w
steps:
  before: {agent: A}
  tells: {agent: A, needs: [before], input: {t: {$secret: one}, u: {$secret: two}}}
  tells_less: {agent: A, needs: [tells], input: {t: {$secret: one}}}
  elsewhere: {agent: B, needs: [tells]}
""")
    play.start()
    play.succeed("before")
    play.succeed("tells")
    named = {task.step: (sorted(task.secrets.values()), task.told_secrets) for task in play.tasks}
    assert named == {
        "before": ([], ["one", "two"]),
        "tells": (["one", "two"], []),
        "tells_less": (["one"], ["two"]),
        "elsewhere": ([], []),
    }


@pytest.mark.parametrize("code", ["secret_missing", "secret_unreadable"])
def test_a_secret_that_is_not_there_is_not_worth_another_attempt(code: str) -> None:
    play = MachineHarness(
        "{name: w, steps: {s: {agent: A, input: {$secret: a}, retry: {on: [any, no_answer]}}}}"
    )
    play.start()
    play.fail("s", code)
    assert play.statuses == {"s": "FAILED"}


def test_a_task_without_secrets_is_written_as_before() -> None:
    assert msgspec.json.decode(encode(AgentTask(task_id="t"))) == {"task_id": "t"}
