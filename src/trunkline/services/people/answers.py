"""
Answers to human tasks: whether one is allowed, and what became of it.

The machine decides which answer counts, so an answer is put into the run's input queue, and then looked for in the
step. Replies to the questions of agents are not dealt with here (`services/runs/runs.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.clock import Clock, Instant, rfc3339
from trunkline.errors import Conflict, Finding, Invalid
from trunkline.id_generation import new_id
from trunkline.ids import RunId, question_id
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.inputs import PersonAnswer, PersonAnswered
from trunkline.machine.state import HumanTask, StepState
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.people.files import file_findings
from trunkline.services.people.rights import PeopleGroups, check_person, claimed
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.queries import RunQueries
from trunkline.services.workflows import Workflows
from trunkline.stores.base import QueuedInput, RunRecord
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.workflow import CompiledStep

MAX_ANSWER = 10_000
MAX_COMMENT = 10_000
# An executor applies an input at once. If none runs, it is stored all the same.
_LOOKS = 10
_SECONDS_BETWEEN_LOOKS = 1.0


class GivenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has sent."""

    answer: str | None = None
    data: Json | UnsetType = UNSET
    comment: str | None = None


class HumanTaskAnswers:
    def __init__(
        self,
        queries: RunQueries,
        workflows: Workflows,
        intake: Intake,
        clock: Clock,
        groups: PeopleGroups,
    ) -> None:
        self._queries = queries
        self._workflows = workflows
        self._intake = intake
        self._clock = clock
        self._groups = groups

    async def is_human_task(self, run_id: RunId, step: str) -> bool:
        """Whether the step asks people, and not an agent. Raises `NotFound`."""
        record, _ = await self._queries.find_step(run_id, step)
        return (await self._plan(record, step)).kind == "ask"

    async def answer(
        self, run_id: RunId, step: str, given: GivenAnswer, *, by: str | None, item: str | None = None
    ) -> None:
        """
        Durable when it returns, and then it counts, unless no executor has applied it within ten seconds.

        `item`: the task that is meant, as the inbox names it. Raises `Invalid` for what the options or the form do not
        allow, `NotAllowed` if this person cannot answer, and `Conflict` if the task was answered before.
        """
        record, state = await self._queries.find_step(run_id, step)
        plan = await self._plan(record, step)
        now = self._clock.now()
        task = _open_task(record, state, item, now)
        check_person(record, state, task, by, self._groups)
        _not_answered_by(record, state, task, by)
        data = _checked(run_id, plan, task, given)
        answer = PersonAnswer(
            at=now, by=by, answer=given.answer, data=msgspec.Raw(encode(data)), comment=given.comment
        )
        queued = QueuedInput(
            run_id, f"answer/{new_id()}", PersonAnswered(step, state.attempts, answer), is_once=True
        )
        audit = audit_entry("run", "answer", run_id, who=by, step=step, answer=given.answer)
        shown = answer.shown()
        await put_and_watch(
            self._queries,
            self._intake,
            queued,
            audit,
            step,
            lambda now_state: _is_applied(record, now_state, state.attempts, shown),
        )

    async def check_reply(self, run_id: RunId, step: str, *, by: str | None) -> None:
        """Whether this person may answer the agent's question, or say what became of the call. Raises as `answer`."""
        record, state = await self._queries.find_step(run_id, step)
        task = None if state.waiting_for is None else state.waiting_for.human_task
        if task is not None:
            check_person(record, state, task, by, self._groups)

    async def _plan(self, record: RunRecord, step: str) -> CompiledStep:
        return (await self._workflows.compiled_for(record)).plan(step)


async def put_and_watch(
    queries: RunQueries,
    intake: Intake,
    queued: QueuedInput,
    audit: NewAuditEntry,
    step: str,
    is_applied: Callable[[StepState], bool],
) -> bool:
    """
    Durable when it returns; False: no executor has applied it within ten seconds.

    `is_applied`: by the step as it is now. It may raise what the caller gets.
    """
    with queries.watch(queued.run_id) as watch:
        await intake.put(queued, audit)
        for _ in range(_LOOKS):
            _, state = await queries.find_step(queued.run_id, step)
            if is_applied(state):
                return True
            await watch.changed(_SECONDS_BETWEEN_LOOKS)
    return False


def _open_task(record: RunRecord, state: StepState, item: str | None, now: Instant) -> HumanTask:
    waiting = state.waiting_for
    if state.status != "WAITING" or waiting is None or waiting.human_task is None:
        raise _closed(record, state)
    if waiting.until is not None and waiting.until <= now:
        raise Conflict(
            f"The answer is too late: the step {state.name} of run {record.id} waited until "
            f"{rfc3339(waiting.until)}.",
            fix=f"See its state: trunkline runs show {record.id}.",
        )
    if item is not None and item != question_id(record.id, state.name, state.attempts, state.replies):
        raise Conflict(
            f"The task {item} is closed, and step {state.name} of run {record.id} has a new one.",
            fix="List the waiting steps: trunkline inbox list.",
        )
    return waiting.human_task


def _closed(record: RunRecord, state: StepState) -> Conflict:
    answered = given_answer(state)
    if answered is None:
        reason = f"is {state.status} and is not waiting for an answer"
    else:
        by, answer = answered.get("by"), answered.get("answer")
        who = f" by {by}" if isinstance(by, str) else ""
        what = f" with {answer!r}" if isinstance(answer, str) else ""
        reason = f"was answered{who}{what} at {answered.get('at')}"
    return Conflict(
        f"The step {state.name} of run {record.id} {reason}.",
        fix=f"See its state: trunkline runs show {record.id}.",
    )


def given_answer(state: StepState) -> JsonObject | None:
    """The answer with which a step that asks people has completed; None: it has not, or without an answer."""
    output = _output(state)
    return output if isinstance(output, dict) and "by" in output else None


def _output(state: StepState) -> Json:
    if state.status != "COMPLETED" or state.output is None:
        return None
    try:
        return decode(state.output)
    except msgspec.DecodeError:
        # A retried run takes over what another one has put out.
        return None


def _not_answered_by(record: RunRecord, state: StepState, task: HumanTask, by: str | None) -> None:
    if task.required > 1 and by in task.answered_by:
        raise Conflict(
            f"The task of step {state.name} of run {record.id} was answered by {by} before. It needs the answers of "
            f"{task.required} different people.",
            fix="Ask another person to answer.",
        )


def _checked(run_id: RunId, plan: CompiledStep, task: HumanTask, given: GivenAnswer) -> Json:
    """The data of an allowed answer."""
    findings = [*_answer_findings(task, given), *_length_findings(given)]
    data: Json = None
    if plan.form is None:
        data = None if isinstance(given.data, UnsetType) else given.data
    elif not isinstance(given.data, UnsetType):
        data = given.data
        findings += plan.form.check(data)
        if not findings and plan.definition.ask is not None and plan.definition.ask.form is not None:
            findings += file_findings(plan.definition.ask.form, data, run_id)
    elif plan.form.check({}):
        findings.append(Finding(path="data", message="is missing; the task has a form"))
    else:
        data = {}
    if not findings and given.answer is None and plan.form is None and data is None and given.comment is None:
        findings.append(Finding(path="answer", message="is missing"))
    if findings:
        raise Invalid(
            "The answer does not match the options or the form of the task.",
            findings=findings,
            fix="See the task: trunkline inbox show.",
        )
    return data


def _answer_findings(task: HumanTask, given: GivenAnswer) -> list[Finding]:
    if not task.options or given.answer in task.options:
        return []
    options = ", ".join(map(repr, task.options))
    wrong = "is missing" if given.answer is None else f"{given.answer[:100]!r} is not one of the options"
    return [Finding(path="answer", message=f"{wrong}; the options are {options}")]


def _length_findings(given: GivenAnswer) -> list[Finding]:
    texts = (("answer", given.answer, MAX_ANSWER), ("comment", given.comment, MAX_COMMENT))
    return [
        Finding(path=name, message=f"has {len(text):,} characters, but the limit is {most:,}")
        for name, text, most in texts
        if text is not None and len(text) > most
    ]


def _is_applied(record: RunRecord, state: StepState, attempt: int, shown: JsonObject) -> bool:
    """Whether the answer counts; False: the run has not applied it yet. Raises `Conflict` if it came too late."""
    waiting = state.waiting_for
    if state.status == "WAITING" and state.attempts == attempt and waiting is not None:
        task = waiting.human_task
        answers: tuple[Json, ...] = () if task is None else task.answers
        if shown in answers:
            return True
        if task is not None and shown["by"] in task.answered_by:
            raise _closed(record, state)
        if task is not None and task.claimed_by not in (None, shown["by"]):
            raise claimed(record, state, task)
        return False
    output = _output(state)
    if isinstance(output, dict):
        answers_of_all = output.get("answers")
        answers = tuple(answers_of_all) if isinstance(answers_of_all, list) else (output,)
        if state.attempts == attempt and shown in answers:
            return True
    raise _closed(record, state)
