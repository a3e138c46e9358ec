"""A child run that waits for people: what its parent's step shows, and when it goes on."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from tests.unit.machine.machine_harness import RUN, MachineHarness

from trunkline.ids import child_run_id
from trunkline.jsontypes import encode
from trunkline.machine.child_waits import MAX_DATA_BYTES, MAX_QUESTIONS, MAX_TEXT, news_for_parent
from trunkline.machine.inputs import (
    CancelRequested,
    ChildContinued,
    ChildWaiting,
    PersonAnswer,
    PersonAnswered,
    decode_input,
    encode_input,
)
from trunkline.machine.state import ParentStep, WaitingFor, open_question, task_state
from trunkline.machine.turn import Turn
from trunkline.messages import Question

ONE = "{name: w, steps: {c: {workflow: below}}}"
TWO = "{name: w, steps: {c: {workflow: below}, a: {agent: A}}}"
BELOW = "{name: below, steps: {q: {agent: A}, p: {agent: A}}}"
CHILD = child_run_id(RUN, "c", 1)
PARENT = ParentStep(RUN, "c")
News = ChildWaiting | ChildContinued | None


class Pair:
    """A parent with a child run: what the child tells reaches the parent as the executor brings it."""

    def __init__(self, parent: str = ONE, child: str = BELOW) -> None:
        self.parent = MachineHarness(parent)
        self.parent.start()
        self.child = MachineHarness(child)
        self.child.state.id, self.child.state.parent = CHILD, PARENT
        self.told: list[News] = []

    def tell(self, turn: Turn) -> News:
        news = None if turn.state.is_final else news_for_parent(turn, PARENT)
        if news is not None:
            self.told.append(news)
            self.parent.take(decode_input(encode_input(news)))
        return news

    @property
    def waiting(self) -> WaitingFor:
        found = self.parent.step("c").waiting_for
        assert found is not None
        return found


def asked(parent: str = ONE) -> Pair:
    """Both agents of the child have asked."""
    pair = Pair(parent)
    pair.tell(pair.child.start())
    pair.tell(pair.child.ask("q", "First?"))
    pair.child.pass_time(timedelta(seconds=1))
    pair.tell(pair.child.ask("p", "Second?"))
    return pair


def test_a_parent_waits_as_soon_as_nothing_in_its_child_goes_on() -> None:
    pair = Pair()
    assert pair.tell(pair.child.start()) is None
    assert pair.tell(pair.child.ask("q", "First?")) is None
    assert pair.parent.state.status == "RUNNING"
    pair.child.pass_time(timedelta(seconds=1))
    pair.tell(pair.child.ask("p", "Second?"))
    assert (pair.parent.state.status, pair.parent.step("c").status) == ("WAITING", "WAITING")
    assert (pair.waiting.kind, pair.waiting.text) == ("input", "First?")
    assert [(each.run_id, each.step, each.item) for each in pair.waiting.inside] == [
        (CHILD, "q", f"{CHILD}.q.1.0"),
        (CHILD, "p", f"{CHILD}.p.1.0"),
    ]
    assert pair.parent.history[-2:] == ["StepWaiting", "RunWaiting"]


def test_a_parent_goes_on_with_its_child_and_ends_with_it() -> None:
    pair = asked()
    pair.tell(pair.child.reply("q", "Yes"))
    assert (pair.parent.state.status, pair.parent.step("c").status) == ("RUNNING", "RUNNING")
    assert pair.parent.step("c").waiting_for is None
    pair.parent.end_run("c", "COMPLETED", 1)
    assert pair.parent.output == 1


def test_the_end_of_a_child_that_waits_ends_the_step() -> None:
    pair = asked()
    pair.parent.end_run("c", "COMPLETED", 1)
    assert (pair.parent.state.status, pair.parent.output) == ("COMPLETED", 1)


def test_the_same_question_is_recorded_once() -> None:
    pair = asked()
    (waiting,) = [news for news in pair.told if isinstance(news, ChildWaiting)]
    before = pair.parent.history
    pair.parent.take(waiting)
    assert pair.parent.history == before


def test_a_run_with_other_work_stays_running_while_its_child_waits() -> None:
    pair = asked(TWO)
    assert (pair.parent.state.status, pair.parent.step("c").status) == ("RUNNING", "WAITING")
    pair.parent.succeed("a")
    assert pair.parent.state.status == "WAITING"


def test_a_child_of_an_earlier_attempt_changes_nothing() -> None:
    pair = Pair()
    pair.parent.take(ChildWaiting("c", child_run_id(RUN, "c", 7), WaitingFor(kind="input", text="Old?")))
    assert pair.parent.step("c").status == "RUNNING"


def test_cancelling_a_run_cancels_the_child_that_waits_and_waits_for_its_end() -> None:
    pair = asked()
    pair.parent.cancel()
    assert pair.parent.told == [(CHILD, CancelRequested())]
    assert (pair.parent.state.status, pair.parent.step("c").status) == ("RUNNING", "RUNNING")
    pair.tell(pair.child.cancel())
    pair.parent.end_run("c", "CANCELLED")
    assert pair.parent.state.status == "CANCELLED"


def test_a_failed_run_stops_the_child_that_waits() -> None:
    pair = asked(TWO)
    pair.parent.fail("a", code="agent_reported_error")
    assert pair.parent.told == [(CHILD, CancelRequested())]
    pair.parent.end_run("c", "CANCELLED")
    assert pair.parent.state.status == "FAILED"


def test_a_pause_reaches_the_child_that_waits_and_the_question_stays() -> None:
    pair = asked()
    pair.parent.pause()
    assert [run for run, _ in pair.parent.told] == [CHILD]
    pair.tell(pair.child.pause())
    pair.parent.resume()
    pair.tell(pair.child.resume())
    assert (pair.parent.state.status, pair.waiting.text) == ("WAITING", "First?")


def test_a_question_goes_through_any_depth_with_the_place_where_it_was_asked() -> None:
    pair = asked()
    other = msgspec.structs.replace(pair.waiting, text="Other?")
    turn = pair.parent.take(ChildWaiting("c", CHILD, other))
    news = news_for_parent(turn, ParentStep(RUN, "top"))
    assert news == ChildWaiting("top", RUN, other)


def test_the_caller_of_a_run_is_asked_what_an_agent_inside_asks() -> None:
    pair = asked()
    steps = pair.parent.state.steps.values()
    assert task_state("WAITING", None, steps) == "input-required"
    assert open_question(steps) is pair.parent.step("c")
    assert not pair.parent.step("c").has_open_question


def test_large_questions_and_many_of_them_are_cut() -> None:
    names = [f"s{number:02}" for number in range(MAX_QUESTIONS + 3)]
    steps = ", ".join(f"{name}: {{agent: A}}" for name in names)
    pair = Pair(child=f"{{name: below, steps: {{{steps}}}}}")
    pair.child.start()
    for name in names:
        question = Question(kind="input", text="x" * (MAX_TEXT * 2), data="y" * MAX_DATA_BYTES)
        pair.tell(pair.child.answer(pair.child.task(name), "interrupted", question=question))
    assert len(pair.waiting.inside) == MAX_QUESTIONS
    assert pair.waiting.more_inside
    assert len(pair.waiting.text) <= MAX_TEXT + 1
    assert pair.waiting.data is None
    assert len(encode(pair.waiting)) < 2 * MAX_TEXT


def test_an_answer_that_leaves_other_questions_open_changes_the_one_that_is_shown() -> None:
    below = "{name: below, steps: {x: {ask: {title: X}}, y: {ask: {title: Y}}}}"
    pair = Pair(child=below)
    pair.tell(pair.child.start())
    assert [each.step for each in pair.waiting.inside] == ["x", "y"]
    answer = PersonAnswer(at=pair.child.now, answer="done", data=msgspec.Raw(b"null"))
    pair.tell(pair.child.take(PersonAnswered("x", 1, answer)))
    assert [each.step for each in pair.waiting.inside] == ["y"]
    assert (pair.waiting.kind, pair.waiting.text) == ("person", "Y")
    assert pair.parent.history.count("RunWaiting") == 1
