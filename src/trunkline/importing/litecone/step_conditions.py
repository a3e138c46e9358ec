"""On which conditions a step runs, as its `when`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trunkline.importing import cel
from trunkline.importing.litecone import conditions
from trunkline.importing.litecone.decision_paths import ALWAYS, DecisionPath
from trunkline.importing.litecone.references import ReferenceTranslator
from trunkline.importing.litecone.source_model import (
    LiteconeConditionalStep,
    LiteconeLoopStep,
    LiteconeWorkflow,
)
from trunkline.importing.litecone.step_order import OrderedStep, StepOrder
from trunkline.importing.report import ImportReport, NotTranslatable

# More could not be written into one condition anyway.
_MAX_DECISIONS = 100
_NOT = {"true": "false", "false": "true"}


class StepConditions:
    def __init__(
        self,
        plan: LiteconeWorkflow,
        flow: StepOrder,
        names: Mapping[str, str],
        report: ImportReport,
        references: Callable[[str], ReferenceTranslator],
    ) -> None:
        self._plan = plan
        self._flow = flow
        self._names = names
        self._report = report
        # What can be read where a step stands.
        self._references = references
        self._conditions: dict[str, str] = {}
        # Those that are being worked out.
        self._open: set[str] = set()

    def condition(self, step: LiteconeConditionalStep) -> str:
        """The step's condition in CEL; one that is not understood fails the run that comes to it."""
        if step.id in self._open:
            raise NotTranslatable(
                f"the condition of '{step.id[:80]}' depends on itself", "Correct the source."
            )
        if step.id not in self._conditions:
            self._open.add(step.id)
            try:
                condition = conditions.translate(step.expression, self._references(step.id).reading)
            except NotTranslatable as cannot:
                path = ("steps", step.id, "condition", "expression")
                self._report.lost(path, f"{cannot.message}: {step.expression[:120]}", cannot.fix)
                condition = cel.failing(f"not carried over: the condition of {step.id[:80]}")
            self._open.remove(step.id)
            self._conditions[step.id] = condition
        return self._conditions[step.id]

    def when(self, name: str, placed: OrderedStep, also: str | None) -> str | None:
        """The condition of a step, together with another one; None: it always runs."""
        parts = [part for part in (self._when(name, placed), also) if part is not None]
        return " && ".join(map(_in_parentheses, parts) if len(parts) > 1 else parts) or None

    def _when(self, name: str, placed: OrderedStep) -> str | None:
        if placed.guard == ALWAYS:
            return None
        condition = self._same_as_predecessor(placed)
        if condition is None and sum(map(len, placed.guard)) <= _MAX_DECISIONS:
            paths = sorted(
                placed.guard, key=lambda path: sorted(self._flow.position[step] for step, _ in path)
            )
            parts = [self._path_condition(path, placed) for path in paths]
            condition = " || ".join(map(_in_parentheses, parts) if len(parts) > 1 else parts)
        if condition is not None and len(condition) <= cel.MAX_CHARACTERS:
            return condition
        why = f"the conditions of the step have more than {cel.MAX_CHARACTERS:,} characters"
        fix = "Let an agent decide, and read its decision in the step's `when`."
        self._report.lost(("steps", name), why, fix)
        return cel.failing(f"not carried over: {why}")

    def _same_as_predecessor(self, placed: OrderedStep) -> str | None:
        """What runs on the same decisions as the step before it is skipped where that is."""
        same = (
            name for name in self._deciding_predecessors(placed) if self._flow.guards[name] == placed.guard
        )
        return next((self._completed(name) for name in same), None)

    def _path_condition(self, path: DecisionPath, placed: OrderedStep) -> str:
        # A step before that ran says that the decisions on the path to it were taken.
        implied: DecisionPath = frozenset()
        parts: list[str] = []
        for name in self._deciding_predecessors(placed):
            for other in self._flow.guards[name] if len(self._flow.guards[name]) == 1 else ():
                if len(implied) < len(other) and other <= path:
                    implied, parts = other, [self._completed(name)]
        for step, holds in sorted(path - implied, key=lambda decision: self._flow.position[decision[0]]):
            condition = self._condition_of(step)
            if not holds:
                condition = _NOT.get(condition, f"!({condition})")
            parts.append(condition if len(path) == 1 else _in_parentheses(condition))
        return " && ".join(parts)

    def _deciding_predecessors(self, placed: OrderedStep) -> list[str]:
        """Steps before this one that either ran or were skipped, by which this one can go."""
        if placed.joins is not None:
            return []
        return [name for name in placed.after if not self._chooses_items(name)]

    def _chooses_items(self, name: str) -> bool:
        """Whether its `when` is about items, so that the step itself is never skipped."""
        step = self._plan.steps[name]
        return isinstance(step, LiteconeLoopStep) and step.most is not None

    def _completed(self, name: str) -> str:
        return f"steps.{self._names[name]}.status == 'COMPLETED'"

    def _condition_of(self, name: str) -> str:
        step = self._plan.steps[name]
        # Only conditionals take decisions.
        return self.condition(step) if isinstance(step, LiteconeConditionalStep) else "true"


def _in_parentheses(condition: str) -> str:
    return f"({condition})" if any(sign in condition for sign in (" || ", " && ", " ? ")) else condition
