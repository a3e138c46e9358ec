"""
What litecone's `${…}` read, as CEL.

    ${workflow.input.topic}           input.topic
    ${step-1.output.findings}         steps.step_1.output.data.findings
    ${step-1.output.text}             steps.step_1.output.text
    ${steps.step-1.output.findings}   as without `steps.`
    ${loop.item.name} ${loop.index}   item.name, index
    ${fork.output.branch.x}           the last step of the branch
    ${check.output.branch_output}     the step that the decision led to
    ${each.output.iterations}         the outputs of the loop

An agent's output object is `output.data` here, whatever dialect it speaks, so a workflow reads on when the agent is
moved to another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from trunkline.importing import cel
from trunkline.importing.litecone.conditions import Operand
from trunkline.importing.litecone.source_model import (
    ExtractedBranchStep,
    LiteconeAgentStep,
    LiteconeConditionalStep,
    LiteconeForkJoinStep,
    LiteconeLoopStep,
    LiteconeParallelStep,
    LiteconeStep,
    LiteconeWorkflow,
)
from trunkline.importing.report import NotTranslatable
from trunkline.jsontypes import Json

Keys = tuple[str | int, ...]

_PART = re.compile(
    r"(?P<name>[^.\[\]'\"]+)|\[(?P<index>\d{1,9})\]|\[(?P<quote>['\"])(?P<text>[^'\"]*)(?P=quote)\]"
)
_PLAIN = re.compile(r"(?:input|steps|item|index)\b")
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_FIX = "Write the value by hand in the imported workflow."
# Fields next to `data` in the output of an agent that speaks JSON-RPC or A2A.
_OTHER_OUTPUT_FIELDS = frozenset({"artifacts", "history", "metadata", "response", "context_id"})
_DECISION_FIELDS = ("condition_result", "branch_taken", "branch_step_id", "branch_output")
# One reference to steps that hold steps that hold steps can come to any number.
_MAX_OUTPUTS = 200
_MAX_LEVELS = 20
LOOP_VARIABLES = ("item", "index", "total", "is_first", "is_last")


class ReferenceScope(Protocol):
    """Where a reference stands. What cannot be read from there raises `NotTranslatable`."""

    plan: LiteconeWorkflow
    names: Mapping[str, str]
    # Agents that are known to answer in parts.
    in_parts: frozenset[str]

    def run_input(self) -> str:
        """What stands for the run's input."""
        ...

    def of_loop(self, name: str) -> str:
        """What stands for `item` and the other names of the loop that it is in."""
        ...

    def holder(self, step: str) -> str:
        """The output in which that of a step is found: its own, or that of the workflow that it is in."""
        ...

    def readable(self, step: str) -> str:
        """The output of a step that calls an agent, or of a loop."""
        ...

    def result(self, step: str) -> str | None:
        """Where the output of a step is found as litecone has it; None: it has to be put together."""
        ...

    def may_be_skipped(self, step: str) -> bool: ...

    def may_be_null(self, step: str) -> tuple[str, ...]:
        """Outputs that are null while a branch that nothing waits for is still running."""
        ...

    def condition(self, step: LiteconeConditionalStep) -> str:
        """The condition of a step that decides, in CEL."""
        ...


class ReferenceTranslator:
    def __init__(self, where: ReferenceScope) -> None:
        self._where = where
        # The outputs that the present reference has come to.
        self._read: list[str] = []
        # Those of them that are read only where a decision led to them.
        self._chosen: set[str] = set()
        # Conditions do without what is missing.
        self._in_condition = False
        # What may be null on the way to what it has come to last.
        self._nulls: tuple[str, ...] = ()
        self._depth = 0

    def value(self, source: Json) -> Json:
        """A value of an `input_mapping`, as a step's `input` has it; raises `NotTranslatable`."""
        match source:
            case str():
                return self._text(source)
            case list():
                return [self.value(item) for item in source]
            case dict():
                if source.keys() == {"$secret"}:
                    raise NotTranslatable(
                        "an object whose only key is '$secret' would refer to a secret in Trunkline",
                        "If it is a secret, set it with trunkline secrets set, and add the "
                        "reference by hand.",
                    )
                return {key: self.value(item) for key, item in source.items()}
            case _:
                return source

    def reading(self, source: str) -> Operand:
        """What stands between `${` and `}` in a condition; raises `NotTranslatable`."""
        self._in_condition = True
        try:
            base, keys = self._resolve(source)
        finally:
            self._in_condition = False
        base = _of_any_type(base)
        found = cel.path(base, keys)
        there = self._presence_conditions(0, base, keys)
        # What a decision led to is null where it led nowhere.
        return Operand(found, (*there, f"{found} != null") if self._chosen else there)

    def _presence_conditions(self, first: int, base: str, keys: Keys) -> tuple[str, ...]:
        """What has to hold for the data to be there, that of the outputs from the first one on."""
        names = [name for name in dict.fromkeys(self._read[first:]) if name not in self._chosen]
        skipped = (self._where.holder(name) for name in names if self._where.may_be_skipped(name))
        holders = dict.fromkeys((*skipped, *self._nulls))
        return (*(f"{holder} != null" for holder in holders), *cel.present(base, keys))

    def collection(self, source: str) -> str:
        """The list that a loop goes over; raises `NotTranslatable`."""
        match = _REFERENCE.fullmatch(source)
        if match is None:
            raise NotTranslatable("'collection' is not a single ${…}", "Write the loop's `items` by hand.")
        items = cel.path(*self._resolve(match[1]))
        return _bounded(unless_null(self._nulls, items, "[]"))

    def may_be_late(self) -> bool:
        """Whether what was read last may not be there yet."""
        return bool(self._nulls)

    def whole(self, step: str) -> Json:
        """The whole output of a step; of one that calls an agent as it is here."""
        if isinstance(self._where.plan.steps.get(step), LiteconeAgentStep):
            return _written(self._where.readable(step))
        return self._whole(step)

    def _begin(self) -> None:
        self._read.clear()
        self._chosen.clear()
        self._nulls = ()
        self._depth = 0

    def _text(self, source: str) -> Json:
        whole = _REFERENCE.fullmatch(source)
        if whole is not None:
            step = self._step_of(whole[1])
            return _written(self._value_of(whole[1])) if step is None else self._whole(step)
        parts: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(source):
            parts.append(_escaped(source[end : match.start()], before_expression=True))
            parts.append(_written(self._value_of(match[1])))
            end = match.end()
        parts.append(_escaped(source[end:], before_expression=False))
        return "".join(parts)

    def _value_of(self, source: str) -> str:
        found = cel.path(*self._resolve(source))
        return unless_null(self._nulls, found)

    def _step_of(self, source: str) -> str | None:
        """The step whose whole output a reference is."""
        keys = _keys(source)
        named = keys[1:] if keys[:1] == ("steps",) and len(keys) == 3 else keys
        step = named[0] if len(named) == 2 and named[1] == "output" else None
        return step if isinstance(step, str) and step in self._where.plan.steps else None

    def _whole(self, step: str) -> Json:
        self._begin()
        # What is made of several outputs reads better as an object than as one long expression.
        parts = (
            None if self._where.result(step) is not None else self._parts(self._where.plan.steps.get(step))
        )
        if parts is None:
            return _written(self._or_null(step, ()))
        return {name: _written(self._or_null(step, (name,))) for name in parts}

    def _parts(self, step: LiteconeStep | None) -> Iterable[str] | None:
        match step:
            case LiteconeParallelStep():
                return step.members
            case LiteconeForkJoinStep():
                return step.branches
            case LiteconeLoopStep():
                return ("iterations", "total_count")
            case LiteconeConditionalStep():
                return _DECISION_FIELDS
            case LiteconeAgentStep() | ExtractedBranchStep() | None:
                return None

    def _resolve(self, source: str) -> tuple[str, Keys]:
        self._begin()
        keys = _keys(source)
        steps = self._where.plan.steps
        match keys:
            case ("workflow", "input", *rest):
                return self._where.run_input(), tuple(rest)
            case ("loop", str(name), *rest) if name in LOOP_VARIABLES:
                return self._where.of_loop(name), tuple(rest)
            case ("steps", str(step), "output", *rest) if step in steps and "steps" not in steps:
                return self.output(step, tuple(rest))
            case (str(step), "output", *rest) if step in steps:
                return self.output(step, tuple(rest))
            case (str(step), "status", *_) if step in steps:
                instead = f"steps.{self._where.names[step]}.status"
                raise NotTranslatable(
                    "steps in litecone have no status to read",
                    f"Read {instead}, which is COMPLETED or FAILED.",
                )
            case _:
                raise NotTranslatable(f"there is nothing to read at '{source[:80]}'", _FIX)

    def output(self, name: str, keys: Keys) -> tuple[str, Keys]:
        """The output of a step: an expression, and the keys that lead on from there."""
        self._read.append(name)
        self._depth += 1
        if len(self._read) > _MAX_OUTPUTS or self._depth > _MAX_LEVELS:
            raise NotTranslatable(
                f"it reads the outputs of more than {_MAX_OUTPUTS} steps, or outputs that are nested too deeply",
                _FIX,
            )
        found = self._output(name, keys)
        if self._where.result(name) is not None or isinstance(
            self._where.plan.steps.get(name), LiteconeAgentStep | LiteconeLoopStep
        ):
            self._nulls = self._where.may_be_null(name)
        self._depth -= 1
        return found

    def _output(self, name: str, keys: Keys) -> tuple[str, Keys]:
        step = self._where.plan.steps.get(name)
        result = self._where.result(name)
        if result is not None:
            return result, keys
        match step:
            case LiteconeAgentStep():
                return self._of_call(step, keys)
            case ExtractedBranchStep():
                return self.output(step.steps[-1], keys)
            case LiteconeLoopStep():
                return self._of_loop(step, keys)
            case LiteconeParallelStep():
                return self._of_parts({member: member for member in step.members}, keys, step)
            case LiteconeForkJoinStep():
                return self._of_parts(
                    {name: part.steps[-1] for name, part in step.branches.items()}, keys, step
                )
            case LiteconeConditionalStep():
                return self._of_decision(step, keys)
            case None:
                raise NotTranslatable(f"unknown step '{name[:80]}'", _FIX)

    def _of_call(self, step: LiteconeAgentStep, keys: Keys) -> tuple[str, Keys]:
        base = self._where.readable(step.id)
        if keys[:1] == ("text",):
            return base, keys
        if step.agent in self._where.in_parts and (not keys or keys[0] in _OTHER_OUTPUT_FIELDS):
            return base, keys
        return f"{base}.data", keys

    def _of_loop(self, step: LiteconeLoopStep, keys: Keys) -> tuple[str, Keys]:
        base = self._where.readable(step.id)
        parts = {
            "iterations": self._iterations(step, base),
            "total_count": f"size({_worked_on(step, base)})",
            "failed_count": _failed_count(step, base),
        }
        match keys:
            case ():
                return cel.mapping((name, parts[name]) for name in ("iterations", "total_count")), ()
            case (str(name), *rest) if name in parts:
                return parts[name], tuple(rest)
            case _:
                raise NotTranslatable(f"a loop's output has no '{keys[0]}'", _FIX)

    def _iterations(self, step: LiteconeLoopStep, base: str) -> str:
        own = self._of_item(step)
        items = _worked_on(step, base)
        match collects_item_results(step), step.on_error:
            case True, _:
                return f"{items}.map(o, o.status == 'COMPLETED' ? o.output{own} : null)"
            case False, "continue" if own:
                return f"{items}.map(o, o == null ? null : o{own})"
            case _:
                return f"{items}.map(o, o{own})" if own else items

    def _of_item(self, step: LiteconeLoopStep) -> str:
        last = self._where.plan.steps.get(step.body[-1])
        result = "" if is_one_call(step, self._where.plan) else ".result"
        return (
            f"{result}.data"
            if isinstance(last, LiteconeAgentStep) and last.agent not in self._where.in_parts
            else result
        )

    def _of_parts(
        self, parts: dict[str, str], keys: Keys, step: LiteconeParallelStep | LiteconeForkJoinStep
    ) -> tuple[str, Keys]:
        match keys:
            case ():
                return cel.mapping((name, self._or_null(part, ())) for name, part in parts.items()), ()
            case (str(name), *rest) if name in parts:
                return self.output(parts[name], tuple(rest))
            case _:
                raise NotTranslatable(f"the output of '{step.id}' has no '{keys[0]}'", _FIX)

    def _or_null(self, part: str, keys: Keys) -> str:
        """As a part of something else: what is null leaves the rest as it is."""
        self._nulls = ()
        found = cel.path(*self.output(part, keys))
        nulls, self._nulls = self._nulls, ()
        return unless_null(nulls, found)

    def _of_decision(self, step: LiteconeConditionalStep, keys: Keys) -> tuple[str, Keys]:
        condition = self._where.condition(step)
        match keys:
            case ("branch_output", *rest):
                branches = (
                    self._branch_value(branch, tuple(rest)) for branch in (step.if_true, step.if_false)
                )
                return _decided(condition, *branches), ()
            case ("condition_result",):
                return f"({condition})", ()
            case ("branch_taken",):
                return _decided(condition, "'then'", "'else'"), ()
            case ("branch_step_id",):
                branches = (
                    "null" if branch is None else cel.text(branch) for branch in (step.if_true, step.if_false)
                )
                return _decided(condition, *(f"dyn({branch})" for branch in branches)), ()
            case ():
                return cel.mapping(
                    (name, self._of_decision(step, (name,))[0]) for name in _DECISION_FIELDS
                ), ()
            case _:
                raise NotTranslatable(f"the output of '{step.id}' has no '{keys[0]}'", _FIX)

    def _branch_value(self, branch: str | None, keys: Keys) -> str:
        if branch is None or branch not in self._where.plan.steps:
            return "null"
        if not self._in_condition:
            return _of_any_type(self._or_null(branch, keys))
        first = len(self._read)
        self._nulls = ()
        base, keys = self.output(branch, keys)
        base = _of_any_type(base)
        there = self._presence_conditions(first, base, keys)
        self._chosen.update(self._read[first:])
        self._nulls = ()
        return _decided(cel.all_of(there), cel.path(base, keys), "null") if there else cel.path(base, keys)


def _keys(source: str) -> Keys:
    keys: list[str | int] = []
    at = 0
    while at < len(source):
        if keys and source[at] == ".":
            at += 1
        match = _PART.match(source, at)
        if match is None:
            raise NotTranslatable(f"'{source[:80]}' is not a supported path", _FIX)
        keys.append(int(match["index"]) if match["index"] else (match["name"] or match["text"] or "").strip())
        at = match.end()
    return tuple(keys)


def _of_any_type(expression: str) -> str:
    # What CEL knows to be an object or a number can neither be compared with everything, nor stand for it.
    return expression if _PLAIN.match(expression) else f"dyn({expression})"


def unless_null(nulls: Sequence[str], found: str, otherwise: str = "null") -> str:
    """What was found, and something else while any of these is null."""
    if not nulls or (otherwise == "null" and nulls == (found,)):
        return found
    return f"({' || '.join(f'{null} == null' for null in nulls)} ? {otherwise} : {_of_any_type(found)})"


def _decided(condition: str, one: str, other: str) -> str:
    return f"(({condition}) ? {one} : {other})"


def is_one_call(step: LiteconeLoopStep, plan: LiteconeWorkflow) -> bool:
    """Whether the loop calls one agent for each item, and needs no workflow for that."""
    return len(step.body) == 1 and isinstance(plan.steps.get(step.body[0]), LiteconeAgentStep)


def collects_item_results(step: LiteconeLoopStep) -> bool:
    """Whether the imported loop tells how each item ended: else an item left out would look like one that failed."""
    return step.on_error == "collect" or (step.on_error == "continue" and step.most is not None)


def _worked_on(step: LiteconeLoopStep, base: str) -> str:
    """The outputs without those of items beyond the most that the loop takes."""
    if step.most is None:
        return base
    chosen = "o.status != 'SKIPPED'" if collects_item_results(step) else "o != null"
    return f"{base}.filter(o, {chosen})"


def _failed_count(step: LiteconeLoopStep, base: str) -> str:
    if collects_item_results(step):
        return f"size({base}.filter(o, o.status == 'FAILED'))"
    return f"size({base}.filter(o, o == null))" if step.on_error == "continue" else "0"


def _escaped(literal: str, *, before_expression: bool) -> str:
    literal = literal.replace("${", "$${")
    # A dollar right before an expression would turn it into the two characters.
    return f"{literal[:-1]}${{ '$' }}" if before_expression and literal.endswith("$") else literal


def _written(expression: str) -> str:
    return f"${{ {_bounded(expression)} }}"


def _bounded(expression: str) -> str:
    if len(expression) + 2 > cel.MAX_CHARACTERS:
        raise NotTranslatable(
            f"the expression would need more than {cel.MAX_CHARACTERS:,} characters",
            "Split it into several expressions, and write them by hand.",
        )
    return expression
