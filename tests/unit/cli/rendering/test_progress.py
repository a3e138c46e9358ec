from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import cast, get_args

import pytest

from trunkline.api.resources.runs import EventResource, RunResource
from trunkline.cli.rendering.followed_run import KNOWN_EVENTS, FollowedRun
from trunkline.machine import events


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """The reader's time zone, for the time of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def a_run() -> FollowedRun:
    steps = [{"name": "research", "agent": "Researcher"}, {"name": "write", "agent": "Writer"}]
    run = {"id": "r1", "workflow": {"name": "report", "version": 2}, "steps": steps}
    return FollowedRun.of(cast("RunResource", run))


def event(second: float, kind: str, **data: object) -> EventResource:
    at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp() + second
    text = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return cast("EventResource", {"seq": 1, "type": kind, "at": text, "data": data})


def test_a_step_is_logged_from_its_start_to_its_end() -> None:
    run = a_run()
    assert run.apply(event(0, "RunStarted")) == "12:00:00 run started (report v2, r1)"
    assert (
        run.apply(event(0.6, "StepStarted", step="research", attempt=1, task_id="t", agent="Researcher"))
        == "12:00:00 research started (attempt 1, Researcher)"
    )
    assert (
        run.apply(event(1, "StepCompleted", step="research", attempt=1, protocol="jsonrpc-2.0"))
        == "12:00:01 research completed (attempt 1, 0.4 s, jsonrpc-2.0)"
    )
    assert run.apply(event(2, "RunCompleted", output={"bytes": 2})) == "12:00:02 run completed (2.0 s)"
    assert run.status == "COMPLETED"
    assert [step.status for step in run.steps.values()] == ["COMPLETED", "PENDING"]


def test_a_retry_says_when_and_why() -> None:
    run = a_run()
    run.apply(event(0, "StepStarted", step="write", attempt=1))
    due = "2026-03-01T12:00:05.000000Z"
    line = run.apply(
        event(1, "StepRetryScheduled", step="write", attempt=1, due=due, error={"message": "HTTP 503"})
    )
    assert line == "12:00:01 write retries (at 12:00:05, attempt 1, 1.0 s): HTTP 503"
    assert run.steps["write"].status == "WAITING"
    run.apply(event(5, "StepStarted", step="write", attempt=2))
    assert (run.steps["write"].attempts, run.steps["write"].reason) == (2, "")


def test_a_run_that_waits_for_a_person_shows_the_question() -> None:
    run = a_run()
    line = run.apply(
        event(1, "StepWaiting", step="write", attempt=1, waiting_for={"kind": "input", "text": "Which tone?"})
    )
    assert line == "12:00:01 write waits for input: Which tone?"
    run.apply(event(1, "RunWaiting", steps=["write"]))
    assert run.waits_for_a_person
    assert run.asking == ("write",)
    run.apply(event(2, "StepReplied", step="write"))
    run.apply(event(2, "RunContinued"))
    assert not run.waits_for_a_person


def test_what_a_step_waits_for_is_named_as_in_a_sentence() -> None:
    waiting_for = {"kind": "person", "text": "Publish it?"}
    line = a_run().apply(event(1, "StepWaiting", step="write", attempt=1, waiting_for=waiting_for))
    assert line == "12:00:01 write waits for a person: Publish it?"


def test_progress_of_an_agent_is_reported_piece_by_piece() -> None:
    run = a_run()
    run.apply(event(0, "StepStarted", step="write", attempt=1))
    news: list[object] = [{"kind": "status", "text": "Looking\nit up"}]
    assert (
        run.apply(event(1, "StepProgress", step="write", news=news)) == "12:00:01 write says: Looking it up"
    )
    first = {"kind": "artifact", "text": "Once upon", "artifact_id": "a", "name": "story"}
    more = {"kind": "artifact", "text": " a time", "artifact_id": "a", "append": True}
    line = run.apply(event(2, "StepProgress", step="write", news=[first, more]))
    assert line == "12:00:02 write sends an artifact (story): Once upon a time"
    last = {**more, "text": " there was a dialect", "parts": [{"kind": "data"}]}
    line = run.apply(event(3, "StepProgress", step="write", news=[last]))
    assert line == "12:00:03 write sends an artifact (1 non-text part): there was a dialect"
    assert run.steps["write"].reason == "Once upon a time there was a dialect"
    run.apply(event(4, "StepCompleted", step="write", attempt=1))
    assert run.steps["write"].reason == ""


@pytest.mark.parametrize(("text", "shown"), [("word " * 100, "… word word"), ("x" * 1000, "… xxxxx")])
def test_of_a_long_text_the_picture_shows_the_end(text: str, shown: str) -> None:
    run = a_run()
    run.apply(event(1, "StepProgress", step="write", news=[{"kind": "artifact", "text": text}]))
    reason = run.steps["write"].reason
    assert reason.startswith(shown)
    assert len(reason) <= 162
    assert reason.endswith(text.strip()[-4:])


def test_a_second_call_says_why() -> None:
    news = [{"kind": "called_again", "text": "The agent does not know the task"}]
    line = a_run().apply(event(1, "StepProgress", step="write", news=news))
    assert line == "12:00:01 write is called again: The agent does not know the task"


def test_an_agent_cannot_steer_the_terminal() -> None:
    run = a_run()
    news = [{"kind": "status", "text": "\x1b[2Jgone\r\u202eback\x07"}]
    line = run.apply(event(1, "StepProgress", step="write", news=news))
    assert line == "12:00:01 write says: [2Jgone back"
    assert line.isprintable()
    assert run.steps["write"].reason.isprintable()


def test_a_failure_says_why_and_whether_the_run_goes_on() -> None:
    run = a_run()
    run.apply(event(0, "StepStarted", step="write", attempt=1))
    error = {"code": "agent_timeout", "message": "No answer"}
    assert (
        run.apply(event(1, "StepFailed", step="write", attempt=1, error=error, handled=True))
        == "12:00:01 write failed (attempt 1, 1.0 s, the run continues): No answer"
    )
    assert run.apply(event(2, "RunFailed", error=error)) == "12:00:02 run failed: No answer"


def test_an_event_of_an_unknown_kind_is_shown_by_its_name() -> None:
    run = a_run()
    assert run.apply(event(0, "StepTeleported", step="research")) == "12:00:00 research [StepTeleported]"
    assert run.apply(event(0, "RunTeleported")) == "12:00:00 run [RunTeleported]"
    assert run.apply(event(0, "StepStarted", step="unheard_of")) == "12:00:00 unheard_of started (attempt 1)"


@pytest.mark.parametrize(
    "kind",
    [
        "StepStarted", "StepWorking", "StepProgress", "StepCompleted", "StepKept", "StepInputGiven",
        "StepRetryScheduled", "StepRequeued", "StepFailed", "StepSkipped", "StepWaiting", "StepReplied",
        "StepRepairRequested",
        "StepOutcomeUnknown", "StepOutcomeResolved", "StepCancelled",
    ],
)  # fmt: skip
def test_an_event_with_missing_fields_is_still_shown(kind: str) -> None:
    line = a_run().apply(event(0, kind, step="research"))
    assert line.startswith("12:00:00 research ")
    assert "[" not in line


def test_every_event_that_the_machine_can_record_has_words() -> None:
    assert {kind.__name__ for kind in get_args(events.Event)} <= KNOWN_EVENTS


def test_items_are_shown_one_by_one_with_their_number() -> None:
    run = a_run()
    line = run.apply(event(0, "StepFannedOut", step="research", items=3, input={"bytes": 9}))
    assert line == "12:00:00 research has 3 items"
    for index in range(3):
        run.apply(event(1, "StepStarted", step=f"research[{index}]", attempt=1, agent="Researcher"))
    line = run.apply(event(2, "StepCompleted", step="research[1]", attempt=1, protocol="a2a-1.0"))
    assert line == "12:00:02 research[1] completed (attempt 1, 1.0 s, a2a-1.0)"
    run.apply(event(3, "StepFailed", step="research[0]", attempt=1, handled=True, error={"message": "No."}))
    assert list(run.steps) == ["research", "write"]
    research = run.steps["research"]
    assert (research.status, research.reason) == ("RUNNING", "2 of 3 items, 1 failed")
    run.apply(event(4, "StepCompleted", step="research", attempt=1))
    assert (research.status, list(run.items)) == ("COMPLETED", ["research[2]"])


def test_a_step_that_is_a_run_names_it() -> None:
    run = a_run()
    data = {"attempt": 1, "run_id": "r2", "workflow": "study", "input": {"bytes": 2}}
    line = run.apply(event(0, "StepChildStarted", step="research", **data))
    assert line.endswith("research started (attempt 1, workflow study, run r2)")
    assert (run.steps["research"].status, run.steps["research"].reason) == ("RUNNING", "run r2")
