"""The checker finds what it is there to find: each history here is a good one with one thing made wrong."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from tests.crash.agents import CallKind, ReceivedCall
from tests.crash.client import RunEvent
from tests.crash.history_checker import (
    LeaseLapse,
    RequestedRun,
    RunHistory,
    SystemHistory,
    second_calls,
    violations,
)

from trunkline.jsontypes import Json, JsonObject, encode

RUN = "run-1"
TASK = f"{RUN}/pay/0"


def _call(*, life: int, task_id: str = TASK, message_id: str = "m", kind: CallKind = "send") -> ReceivedCall:
    return ReceivedCall(
        agent="payer", kind=kind, task_id=task_id, message_id=message_id, body=b"{}", life=life
    )


def _exchange(task_id: str) -> JsonObject:
    body = encode({"id": task_id, "method": "message/send"}).decode()
    return {"request": {"body": body}, "response": {"status": 200}}


def _events(*events: tuple[str, JsonObject]) -> list[RunEvent]:
    return [RunEvent(seq, kind, data) for seq, (kind, data) in enumerate(events, 1)]


def _good() -> SystemHistory:
    """One run of one step, whose agent was called again after a kill."""
    run: JsonObject = {"id": RUN, "status": "COMPLETED", "input": {"key": "k"}, "output": "paid"}
    events = _events(
        ("RunStarted", {}),
        ("StepStarted", {"step": "pay", "attempt": 1, "task_id": TASK}),
        ("StepCompleted", {"step": "pay", "attempt": 1}),
        ("RunCompleted", {}),
    )
    return SystemHistory(
        wanted=[RequestedRun(key="k", run_id=RUN, ends=[("COMPLETED", "paid")])],
        runs=[RunHistory(run=run, events=events, wire=[_exchange(TASK)])],
        calls=[_call(life=1), _call(life=2)],
        lives={1: "killed"},
    )


def test_a_good_history_has_no_violation() -> None:
    assert violations(_good()) == []


def _pause_the_first_life(history: SystemHistory) -> None:
    history.lives = {1: "paused"}


def _pause_the_second_life(history: SystemHistory) -> None:
    history.lives = {2: "paused"}


def _pause_the_only_life(history: SystemHistory) -> None:
    history.lives = {1: "paused"}
    history.calls[1].life = 1


@pytest.mark.parametrize("pause", [_pause_the_first_life, _pause_the_second_life, _pause_the_only_life])
def test_a_process_that_was_paused_for_long_may_call_again(pause: Callable[[SystemHistory], None]) -> None:
    history = _good()
    pause(history)
    assert violations(history) == []
    assert second_calls(history) == {"caller paused": 1}


def _lapse(last_beat_at: float, renewed_at: float) -> Callable[[SystemHistory], None]:
    """The first process lived on, and was late to renew its lease; it called at 10, the second one at 20."""

    def change(history: SystemHistory) -> None:
        history.lives = {}
        history.calls[0].at, history.calls[1].at = 10.0, 20.0
        history.lapsed = {1: [LeaseLapse(last_beat_at=last_beat_at, renewed_at=renewed_at)]}

    return change


@pytest.mark.parametrize(("last_beat_at", "renewed_at"), [(5.0, 21.0), (12.0, 27.5), (5.0, 19.0)])
def test_the_task_of_a_process_whose_lease_lapsed_may_be_called_again(
    last_beat_at: float, renewed_at: float
) -> None:
    history = _good()
    _lapse(last_beat_at, renewed_at)(history)
    assert violations(history) == []
    assert second_calls(history) == {"lease lapsed": 1}


def _lose_the_run(history: SystemHistory) -> None:
    history.runs, history.calls = [], []


def _make_another_run(history: SystemHistory) -> None:
    twin = deepcopy(history.runs[0])
    twin.run["id"] = "run-2"
    twin.events[1].data["task_id"] = "run-2/pay/0"
    history.runs.append(twin)
    history.calls.append(_call(life=2, task_id="run-2/pay/0"))


def _change_the_output(history: SystemHistory) -> None:
    history.runs[0].run["output"] = "nothing"


def _leave_it_running(history: SystemHistory) -> None:
    history.runs[0].run["status"] = "RUNNING"
    history.runs[0].events.pop()


def _forget_a_wake_reason(history: SystemHistory) -> None:
    history.without_wake_reason = 1


def _leave_a_task(history: SystemHistory) -> None:
    history.waiting = {"tasks_claimed": 1}


def _skip_a_number(history: SystemHistory) -> None:
    del history.runs[0].events[1]


def _complete_twice(history: SystemHistory) -> None:
    _insert(history, 3, "StepCompleted", {"step": "pay", "attempt": 1})


def _go_on_after_the_end(history: SystemHistory) -> None:
    _insert(history, 4, "RunContinued", {})


def _end_twice(history: SystemHistory) -> None:
    _insert(history, 4, "RunFailed", {})


def _start_twice(history: SystemHistory) -> None:
    _insert(history, 2, "StepStarted", {"step": "pay", "attempt": 2, "task_id": TASK})


def _call_twice_in_one_life(history: SystemHistory) -> None:
    history.calls.append(_call(life=2))


def _die_after_the_second_call(history: SystemHistory) -> None:
    history.lost_at = {1: 2.0}
    history.calls[1].at = 1.0


def _pause_after_the_second_call(history: SystemHistory) -> None:
    history.lives = {1: "paused"}
    _die_after_the_second_call(history)


def _stop_gracefully_before_the_second_call(history: SystemHistory) -> None:
    history.lives = {1: "stopped"}


def _change_the_message_id(history: SystemHistory) -> None:
    history.calls[1].message_id = "another"


def _change_the_body(history: SystemHistory) -> None:
    history.calls[1].body = b'{"more": 1}'


def _change_the_task(history: SystemHistory) -> None:
    other = f"{RUN}/pay/1"
    _insert(history, 2, "StepRetryScheduled", {"step": "pay", "attempt": 1, "answered": False})
    _insert(history, 3, "StepStarted", {"step": "pay", "attempt": 2, "task_id": other})
    history.calls[1].task_id = other


def _call_with_an_unknown_task(history: SystemHistory) -> None:
    history.calls.append(_call(life=2, task_id=f"{RUN}/pay/7"))


def _call_for_an_unknown_run(history: SystemHistory) -> None:
    history.calls.append(_call(life=2, task_id="run-7/pay/0"))


def _complete_without_a_call(history: SystemHistory) -> None:
    history.calls = []


def _take_two_answers(history: SystemHistory) -> None:
    history.runs[0].wire.append(_exchange(TASK))


def _call_an_at_most_once_step_twice(history: SystemHistory) -> None:
    history.wanted[0].at_most_once = frozenset({"pay"})


def _call_after_the_cancellation(history: SystemHistory) -> None:
    history.wanted[0].cancelled_in = 1


def _cancel_without_telling(history: SystemHistory) -> None:
    _insert(history, 2, "StepWorking", {"step": "pay", "attempt": 1, "remote_task_id": "r"})
    _insert(history, 3, "RunCancelRequested", {})


def _insert(history: SystemHistory, place: int, kind: str, data: dict[str, Json]) -> None:
    """Puts an event in, and renumbers the rest. Nothing else is wrong."""
    events = history.runs[0].events
    events.insert(place, RunEvent(0, kind, data))
    history.runs[0].events = [RunEvent(seq, event.type, event.data) for seq, event in enumerate(events, 1)]


@pytest.mark.parametrize(
    ("sabotage", "words"),
    [
        (_lose_the_run, "is lost"),
        (_make_another_run, "2 runs instead of one"),
        (_change_the_output, "with output 'nothing'"),
        (_leave_it_running, "it is RUNNING"),
        (_forget_a_wake_reason, "no reason to wake"),
        (_leave_a_task, "1 wait in tasks_claimed"),
        (_skip_a_number, "numbered [1, 3, 4]"),
        (_complete_twice, "StepCompleted of step pay came after its StepCompleted"),
        (_go_on_after_the_end, "RunContinued came after the end"),
        (_end_twice, "its final events are"),
        (_start_twice, "started 2 times with 0 causes"),
        (_call_twice_in_one_life, "without a reason"),
        (_stop_gracefully_before_the_second_call, "without a reason"),
        (_die_after_the_second_call, "without a reason"),
        (_pause_after_the_second_call, "without a reason"),
        (_lapse(21.0, 36.0), "without a reason"),
        (_lapse(-6.0, 9.0), "without a reason"),
        (_change_the_message_id, "with the message ids"),
        (_change_the_body, "different bodies"),
        (_change_the_task, "though its message was to stay the same"),
        (_call_with_an_unknown_task, "which no event names"),
        (_call_for_an_unknown_run, "which does not exist"),
        (_complete_without_a_call, "no agent saw"),
        (_take_two_answers, "2 answers"),
        (_call_an_at_most_once_step_twice, "may be called once"),
        (_call_after_the_cancellation, "cancelled in life 1"),
        (_cancel_without_telling, "never told"),
    ],
)
def test_the_checker_finds(sabotage: Callable[[SystemHistory], None], words: str) -> None:
    history = _good()
    sabotage(history)
    found = violations(history)
    assert any(words in violation for violation in found), found


def _nested() -> SystemHistory:
    """One run of one step, which has begun another run."""
    begun: JsonObject = {"step": "below", "attempt": 1, "run_id": "run-2"}
    return SystemHistory(
        wanted=[RequestedRun(key="k", run_id=RUN, ends=[("COMPLETED", None)])],
        runs=[
            RunHistory(
                run={"id": RUN, "status": "COMPLETED", "input": {"key": "k"}, "output": None},
                events=_events(
                    ("RunStarted", {}),
                    ("StepChildStarted", begun),
                    ("StepCompleted", {"step": "below"}),
                    ("RunCompleted", {}),
                ),
                wire=[],
            ),
            RunHistory(
                run={
                    "id": "run-2",
                    "status": "COMPLETED",
                    "input": {},
                    "output": None,
                    "parent": {"run_id": RUN, "step": "below"},
                },
                events=_events(("RunStarted", {}), ("RunCompleted", {})),
                wire=[],
            ),
        ],
        calls=[],
        lives={},
    )


def _lose_the_child(history: SystemHistory) -> None:
    del history.runs[1]


def _forget_who_began_the_child(history: SystemHistory) -> None:
    history.runs[0].events[1] = RunEvent(2, "StepWorking", {"step": "below"})


def _leave_the_child_alone(history: SystemHistory) -> None:
    child = history.runs[1]
    child.run["status"] = "RUNNING"
    del child.events[1]


def _begin_the_child_again(history: SystemHistory) -> None:
    events = history.runs[0].events
    events[1:] = [
        RunEvent(seq, event.type, event.data) for seq, event in enumerate([events[1], *events[1:]], 2)
    ]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_lose_the_child, "run run-2 was begun and is lost"),
        (_forget_who_began_the_child, "run run-2: no step has begun it"),
        (_leave_the_child_alone, "run run-2: it is RUNNING though the run above it is over"),
        (_begin_the_child_again, "run run-2 was begun 2 times"),
    ],
)
def test_errors_of_a_child_workflow_are_reported(change: Callable[[SystemHistory], None], found: str) -> None:
    history = _nested()
    assert violations(history) == []
    change(history)
    assert found in violations(history)
