"""
The steps of one imported workflow, which comes from a workflow, a loop or a branch in litecone.

What a loop or a branch reads from outside it gets as its input, under the names that are in `ChildInput`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trunkline.importing import cel
from trunkline.importing.litecone.decision_paths import implies
from trunkline.importing.litecone.loops import for_each, item_condition, names_of_loop
from trunkline.importing.litecone.references import ReferenceTranslator, is_one_call, unless_null
from trunkline.importing.litecone.source_model import (
    ExtractedBranchStep,
    LiteconeAgentStep,
    LiteconeConditionalStep,
    LiteconeForkJoinStep,
    LiteconeLoopStep,
    LiteconeParallelStep,
    LiteconeWorkflow,
)
from trunkline.importing.litecone.step_conditions import StepConditions
from trunkline.importing.litecone.step_order import OrderedStep, StepOrder, order_steps
from trunkline.importing.report import ImportReport, NotTranslatable
from trunkline.jsontypes import Json, JsonObject

# Steps that all wait for many others: beyond this a definition could not be saved.
MAX_LINKS = 100_000
MAX_WORKFLOWS = 100
MAX_LEVELS = 5
MAX_NAME = 255
_ELSEWHERE = "Read an earlier step, or the output of the loop."


@dataclass(slots=True)
class ImportContext:
    """What all regions of a workflow have in common."""

    plan: LiteconeWorkflow
    names: Mapping[str, str]
    report: ImportReport
    in_parts: frozenset[str]
    title: str
    # Steps that the next one may not wait for, each with its fork and branch.
    unawaited: Mapping[str, tuple[str, str]]
    # Workflows that others begin, each before those.
    children: list[JsonObject] = field(default_factory=list[JsonObject])
    # Counted when they are begun: steps that hold one another would begin more and more of them, and end none.
    begun: int = 0
    reached: set[str] = field(default_factory=set[str])


class WorkflowBuilder:
    def __init__(
        self, whole: ImportContext, flow: StepOrder, outside: ChildInput | None, within: tuple[str, ...]
    ) -> None:
        self.whole = whole
        self.flow = flow
        self.outside = outside
        self.decisions = StepConditions(whole.plan, flow, whole.names, whole.report, self.references)
        # The steps in branches that are workflows, and the outputs of these.
        self.inside: dict[str, ExtractedBranchStep] = {}
        self.outputs: dict[str, JsonObject] = {}
        # Branches that others read than the step that joins them.
        self.looked_at: dict[tuple[str, str], None] = {}
        # The loops and branches that it is in.
        self._within = within
        whole.reached |= flow.position.keys()

    def steps(self) -> JsonObject:
        written = {name: self._step(name, placed) for name, placed in self.flow.calls.items()}
        for branch in self.looked_at:
            self._continue_on_error(branch, written)
        return {self.whole.names[name]: step for name, step in written.items()}

    def _continue_on_error(self, branch: tuple[str, str], written: dict[str, JsonObject]) -> None:
        """Makes a failure end the branch for all readers of its steps. By default, it does so only for the join."""
        members = [
            name for name, where in self.whole.unawaited.items() if where == branch and name in written
        ]
        for number, name in enumerate(members):
            step = {**written[name], "on_error": "continue"}
            if number:
                before = f"steps.{self.whole.names[members[number - 1]]}.status == 'COMPLETED'"
                when = step.get("when")
                step["when"] = before if when in (None, before) else f"{before} && ({when})"
            written[name] = step

    def limit(self) -> int | None:
        """How many steps may run at once, where the source says it of some of them."""
        limits: list[int] = []
        for name in self.flow.position:
            step = self.whole.plan.steps[name]
            if (
                isinstance(step, LiteconeParallelStep)
                and step.limit is not None
                and step.limit < len(step.members)
            ):
                limits.append(step.limit)
                path = ("steps", name, "max_parallelism")
                self.whole.report.note(path, "it applies to the whole workflow, as `max_parallel`")
        return min(limits, default=None)

    def references(self, reader: str | None, loop: Mapping[str, str] | None = None) -> ReferenceTranslator:
        """What can be read where a step stands; None: after all of them."""
        return ReferenceTranslator(StepScope(self, reader, loop))

    def _step(self, name: str, placed: OrderedStep) -> JsonObject:
        try:
            match placed.step:
                case LiteconeAgentStep() as step:
                    return self._written(
                        name, placed, {"agent": step.agent}, self._input(step, StepScope(self, name))
                    )
                case LiteconeLoopStep() as step:
                    return self._loop(step, placed)
                case ExtractedBranchStep() as step:
                    return self._part(step, placed)
        except NotTranslatable as cannot:
            self.whole.report.lost(("steps", name), cannot.message, cannot.fix)
            why = cel.failing(f"not carried over: {cannot.message}")
            return self._written(name, placed, {"agent": "not-carried-over"}, f"${{ {why} }}")

    def _loop(self, step: LiteconeLoopStep, placed: OrderedStep) -> JsonObject:
        references = self.references(step.id)
        items = references.collection(step.collection)
        if references.may_be_late():
            self.whole.report.lost(
                ("steps", step.id, "loop_config", "collection"),
                "the list comes from a branch that may have failed or may still be running when "
                "the loop starts; the loop then has no items",
                "Remove `join` from the step after the fork, so that it waits for all branches.",
            )
        view = StepScope(self, step.id, names_of_loop(step, items))
        each = for_each(step, items, self.whole.report)
        body = self.whole.plan.steps.get(step.body[0])
        if is_one_call(step, self.whole.plan) and isinstance(body, LiteconeAgentStep):
            self.whole.reached.add(body.id)
            called: JsonObject = {"agent": body.agent}
            given: Json = self._input(body, view)
        else:
            child, _, given = self._child(step.id, step.body, view)
            called = {"workflow": child}
        return self._written(
            step.id, placed, {**called, "for_each": each}, given, item_condition(step, self.whole.report)
        )

    def _part(self, step: ExtractedBranchStep, placed: OrderedStep) -> JsonObject:
        child, output, given = self._child(step.id, step.steps, StepScope(self, step.id))
        # A step that was left out there cannot be read.
        written_there = self.whole.children[-1]["steps"]
        there = [
            name
            for name in step.steps[:-1]
            if isinstance(written_there, dict) and self.whole.names[name] in written_there
        ]
        self.inside |= dict.fromkeys((*there, step.steps[-1]), step)
        self.outputs[step.id] = output
        written = self._written(step.id, placed, {"workflow": child}, given)
        return written if step.seconds is None else {**written, "deadline": f"{step.seconds}s"}

    def _child(self, name: str, entry: Sequence[str], view: StepScope) -> tuple[str, JsonObject, JsonObject]:
        """A workflow of these steps: its name, its output, and what it is given."""
        whole = self.whole
        whole.begun += 1
        if name in self._within:
            raise NotTranslatable("the loop or branch contains itself", "Correct the source.")
        if len(self._within) == MAX_LEVELS or whole.begun > MAX_WORKFLOWS:
            raise NotTranslatable(
                f"it would need more than {MAX_WORKFLOWS} workflows, or more than {MAX_LEVELS} nested ones",
                "Nest fewer loops, or write them by hand.",
            )
        flow = (
            order_steps(whole.plan, entry, whole.report, in_a_row=True)
            if entry[0] in whole.plan.steps
            else None
        )
        if flow is None or not flow.calls:
            raise NotTranslatable(
                "the steps of a loop or branch cannot be ordered, or none of them calls an agent",
                "Correct the source.",
            )
        outside = ChildInput(view)
        region = WorkflowBuilder(whole, flow, outside, (*self._within, name))
        title = f"{whole.title}.{name}".replace("/", "-")[:MAX_NAME]
        child: JsonObject = {"name": title}
        limit = region.limit()
        if limit is not None:
            child["max_parallel"] = limit
        child["steps"] = region.steps()
        output: JsonObject = {"result": region.references(None).whole(entry[-1])}
        whole.children.append({**child, "output": output})
        return title, output, outside.given()

    def _written(
        self, name: str, placed: OrderedStep, called: JsonObject, given: Json, also: str | None = None
    ) -> JsonObject:
        written: JsonObject = {**called}
        if placed.after:
            written["needs"] = [self.whole.names[before] for before in placed.after]
        if placed.joins is not None:
            written["join"] = self._join(placed.joins)
        when = self.decisions.when(name, placed, also)
        if when is not None:
            written["when"] = when
        written["input"] = given
        seconds = self.flow.seconds.get(name)
        return written if seconds is None else {**written, "deadline": f"{seconds}s"}

    def _join(self, fork: LiteconeForkJoinStep) -> Json:
        self.whole.report.note(
            ("steps", fork.id, "fork_join_config", "join_policy"),
            "the next step starts as soon as enough branches have completed. The outputs of the "
            "other branches are null until they finish. litecone waits for all of them",
        )
        if fork.policy == "n_of_m":
            return {"at_least": fork.required, "cancel_rest": False}
        return {"policy": fork.policy, "cancel_rest": False}

    def _input(self, step: LiteconeAgentStep, view: StepScope) -> JsonObject:
        references = ReferenceTranslator(view)
        written: JsonObject = {}
        for key, value in step.input.items():
            try:
                written[key] = references.value(value)
            except NotTranslatable as cannot:
                self.whole.report.lost(("steps", step.id, "input_mapping", key), cannot.message, cannot.fix)
                written[key] = f"${{ {cel.failing(f'not carried over: {cannot.message}')} }}"
        return written


class StepScope:
    """What can be read from one place of a region."""

    def __init__(
        self, region: WorkflowBuilder, reader: str | None, loop: Mapping[str, str] | None = None
    ) -> None:
        self.plan = region.whole.plan
        self.names = region.whole.names
        self.in_parts = region.whole.in_parts
        self._region = region
        self._reader = reader
        self._loop = loop

    def run_input(self) -> str:
        outside = self._region.outside
        return "input" if outside is None else outside.run_input()

    def of_loop(self, name: str) -> str:
        if self._loop is not None:
            return self._loop[name]
        if self._region.outside is None:
            raise NotTranslatable(
                "'loop' is used outside of a loop", "Write the value by hand in the imported workflow."
            )
        return self._region.outside.of_loop(name)

    def holder(self, step: str) -> str:
        part = self._region.inside.get(step)
        single = step if part is None else part.id
        if single not in self._region.flow.position:
            return self._child_input(step).readable(step)
        return self._own_output(single)

    def readable(self, step: str) -> str:
        part = self._region.inside.get(step)
        if part is None and step not in self._region.flow.position:
            return self._child_input(step).readable(step)
        if part is None:
            return self._own_output(step)
        if step == part.steps[-1]:
            return f"{self._own_output(part.id)}.result"
        # In addition to its result, the workflow outputs what is read elsewhere, under names other than `result`.
        shown = f"of_{self.names[step]}"
        self._region.outputs[part.id][shown] = f"${{ steps.{self.names[step]}.output }}"
        return f"{self._own_output(part.id)}.{shown}"

    def result(self, step: str) -> str | None:
        if step in self._region.flow.position:
            self._own_output(step)
        if isinstance(self.plan.steps.get(step), LiteconeAgentStep):
            return None
        part = self._region.inside.get(step)
        if part is not None and step == part.steps[-1]:
            return f"{self._own_output(part.id)}.result"
        return None if step in self._region.flow.position else self._child_input(step).result(step)

    def may_be_skipped(self, step: str) -> bool:
        guards = self._region.flow.guards
        if self._reader not in guards or step not in self._region.flow.calls:
            return False
        return not implies(guards[self._reader], guards[step])

    def may_be_null(self, step: str) -> tuple[str, ...]:
        part = self._region.inside.get(step)
        single = step if part is None else part.id
        if single not in self._region.flow.position:
            return self._child_input(step).may_be_null(step)
        unawaited = self._region.whole.unawaited
        # Within a branch each step waits for the one before it.
        within = None if self._reader is None else unawaited.get(self._reader)
        branch = unawaited.get(single)
        if branch is None or branch == within:
            return ()
        if not self._joins(single):
            self._region.looked_at[branch] = None
        return (self._own_output(single),)

    def _joins(self, step: str) -> bool:
        placed = None if self._reader is None else self._region.flow.calls.get(self._reader)
        return placed is not None and placed.joins is not None and step in placed.after

    def condition(self, step: LiteconeConditionalStep) -> str:
        return self._region.decisions.condition(step)

    def _own_output(self, step: str) -> str:
        position = self._region.flow.position
        if self._reader in position and position[step] >= position[self._reader]:
            raise NotTranslatable(f"'{step[:80]}' runs later, so it has no output yet", _ELSEWHERE)
        return f"steps.{self.names[step]}.output"

    def _child_input(self, step: str) -> ChildInput:
        if self._region.outside is None:
            raise NotTranslatable(f"'{step[:80]}' runs inside a loop, or never runs", _ELSEWHERE)
        return self._region.outside


class ChildInput:
    """What a workflow within a workflow is given: only what it reads."""

    def __init__(self, view: StepScope) -> None:
        self._view = view
        self._values: JsonObject = {}
        self._steps: JsonObject = {}
        self._results: JsonObject = {}

    def given(self) -> JsonObject:
        """The input of the step that begins it."""
        named = {"steps": self._steps, "results": self._results}
        return {**self._values, **{name: values for name, values in named.items() if values}}

    def run_input(self) -> str:
        self._values["input"] = f"${{ {self._view.run_input()} }}"
        return "input.input"

    def of_loop(self, name: str) -> str:
        self._values[name] = f"${{ {self._view.of_loop(name)} }}"
        return f"input.{name}"

    def readable(self, step: str) -> str:
        name = self._view.names[step]
        found = unless_null(self._view.may_be_null(step), self._view.readable(step))
        self._steps[name] = f"${{ {found} }}"
        return f"input.steps.{name}"

    def result(self, step: str) -> str | None:
        result = self._view.result(step)
        if result is None:
            return None
        name = self._view.names[step]
        self._results[name] = f"${{ {unless_null(self._view.may_be_null(step), result)} }}"
        return f"input.results.{name}"

    def may_be_null(self, step: str) -> tuple[str, ...]:
        if not self._view.may_be_null(step):
            return ()
        return (self.result(step) or self.readable(step),)
