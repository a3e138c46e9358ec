"""One of litecone's workflows in our language."""

from __future__ import annotations

from functools import partial

from trunkline.importing import cel
from trunkline.importing.account import Account, CannotCarry
from trunkline.importing.litecone import conditions
from trunkline.importing.litecone.flow import Flow, Placed, order_steps
from trunkline.importing.litecone.guards import ALWAYS, Way, implies
from trunkline.importing.litecone.plan import Call, Conditional, Fork, Loop, Parallel, Plan
from trunkline.importing.litecone.references import References, Surroundings, tells_of_each
from trunkline.importing.names import identifiers
from trunkline.jsontypes import Json, JsonObject

# Steps that all wait for many others: beyond this a definition could not be saved.
MOST_LINKS = 100_000
MOST_ITEMS_AT_ONCE = 1_000
# Of what a macro of CEL can go through.
MOST_MAPPED = 1_000
_MOST_SHOWN = 5
# More could not be written into one condition anyway.
_MOST_DECISIONS = 100
_NOT = {"true": "false", "false": "true"}


def translate_plan(plan: Plan, account: Account, in_parts: frozenset[str]) -> JsonObject | None:
    """The workflow's definition; None when there is none, which is then reported."""
    flow = order_steps(plan, (plan.start,), account)
    if flow is None:
        return None
    if sum(len(placed.after) for placed in flow.calls.values()) > MOST_LINKS:
        account.lost(
            ("steps",),
            f"the steps would wait for one another more than {MOST_LINKS:,} times",
            "Put a step between steps that run in parallel and steps that all wait for them.",
        )
        return None
    return _Translation(plan, flow, account, in_parts).definition()


class _Translation:
    def __init__(self, plan: Plan, flow: Flow, account: Account, in_parts: frozenset[str]) -> None:
        self._plan = plan
        self._flow = flow
        self._account = account
        self._in_parts = in_parts
        self._names = identifiers(plan.steps)
        self._conditions: dict[str, str] = {}

    def definition(self) -> JsonObject:
        steps: JsonObject = {}
        for name, placed in self._flow.calls.items():
            step = self._plan.steps[name]
            if isinstance(step, Loop):
                steps[self._names[name]] = self._loop(step, placed)
            elif isinstance(step, Call):
                steps[self._names[name]] = self._call(step, placed)
        definition: JsonObject = {"name": self._name()}
        if self._plan.description is not None:
            definition["description"] = self._plan.description
        limit = self._limit()
        if limit is not None:
            definition["max_parallel"] = limit
        self._tell_of_names()
        self._tell_of_the_rest()
        return {**definition, "steps": steps}

    def _name(self) -> str:
        name = self._plan.name.replace("/", "-")
        if name != self._plan.name:
            self._account.note(("name",), f"the workflow is called '{name}': a name has no '/' here")
        return name

    def _call(self, step: Call, placed: Placed) -> JsonObject:
        return {
            "agent": step.agent,
            **self._waits(step.id, placed),
            "input": self._input(step, self._references(step.id)),
            **self._deadline(step.id),
        }

    def _loop(self, step: Loop, placed: Placed) -> JsonObject:
        try:
            body = self._body(step)
            items = self._references(step.id).collection(step.collection)
        except CannotCarry as cannot:
            self._account.lost(("steps", step.id, "loop_config"), cannot.message, cannot.fix)
            why = cel.failing(f"not carried over: {cannot.message}")
            return {"agent": "not-carried-over", **self._waits(step.id, placed), "input": f"${{ {why} }}"}
        return {
            "agent": body.agent,
            **self._waits(step.id, placed, self._within(step)),
            "for_each": self._for_each(step, items),
            "input": self._input(body, self._references(step.id, _of_loop(step, items))),
            **self._deadline(step.id),
        }

    def _body(self, step: Loop) -> Call:
        body = self._plan.steps.get(step.body[0])
        if len(step.body) > 1 or not isinstance(body, Call):
            raise CannotCarry(
                "a loop over more than one call of an agent is not carried over",
                "Make a workflow of the loop's steps, and call it for each item.",
            )
        return body

    def _for_each(self, step: Loop, items: str) -> JsonObject:
        path = ("steps", step.id, "loop_config")
        each: JsonObject = {"items": f"${{ {items} }}", "mode": step.mode}
        if step.limit is not None and step.mode == "parallel":
            each["limit"] = min(step.limit, MOST_ITEMS_AT_ONCE)
            if step.limit > MOST_ITEMS_AT_ONCE:
                self._account.note(
                    (*path, "max_parallelism"), f"at most {MOST_ITEMS_AT_ONCE:,} items are worked on at once"
                )
        elif step.limit is not None:
            self._account.note((*path, "max_parallelism"), "it is left out: the loop goes one by one")
        if tells_of_each(step):
            each["on_error"] = "collect"
        elif step.on_error != "stop":
            each["on_error"] = step.on_error
        if step.on_error != "stop":
            self._account.note(
                (*path, "on_error"),
                "the run goes on when items have failed; litecone lets the run fail once all items are over",
            )
        if step.most is None or step.most > MOST_MAPPED:
            self._account.note(
                (*path, "collection"),
                f"'iterations' of the loop can be read for lists of up to {MOST_MAPPED:,} items",
            )
        return each

    def _within(self, step: Loop) -> str | None:
        if step.most is None:
            return None
        self._account.note(
            ("steps", step.id, "loop_config", "max_iterations"),
            f"items beyond the first {step.most:,} are skipped by `when`",
        )
        return f"index < {step.most}"

    def _waits(self, name: str, placed: Placed, also: str | None = None) -> JsonObject:
        waits: JsonObject = {}
        if placed.after:
            waits["needs"] = [self._names[before] for before in placed.after]
        if placed.joins is not None:
            waits["join"] = self._join(placed.joins)
        when = [self._when(name, placed), also]
        conditions = [condition for condition in when if condition is not None]
        if conditions:
            waits["when"] = " && ".join(map(_apart, conditions) if len(conditions) > 1 else conditions)
        return waits

    def _join(self, fork: Fork) -> Json:
        path = ("steps", fork.id, "fork_join_config", "join_policy")
        self._account.note(
            path,
            "the next step begins as soon as enough branches have completed; the others run on, and read null until"
            " they are over. litecone waits for all of them",
        )
        match fork.policy:
            case "n_of_m":
                return {"at_least": fork.required, "cancel_rest": False}
            case policy:
                return {"policy": policy, "cancel_rest": False}

    def _when(self, name: str, placed: Placed) -> str | None:
        if placed.guard == ALWAYS:
            return None
        condition = self._as_before(placed)
        if condition is None and sum(map(len, placed.guard)) <= _MOST_DECISIONS:
            ways = sorted(placed.guard, key=lambda way: sorted(self._flow.position[step] for step, _ in way))
            parts = [self._way(way, placed) for way in ways]
            condition = " || ".join(map(_apart, parts) if len(parts) > 1 else parts)
        if condition is not None and len(condition) <= cel.MOST_CHARACTERS:
            return condition
        why = f"the step runs on conditions of more than {cel.MOST_CHARACTERS:,} characters"
        self._account.lost(
            ("steps", name), why, "Let an agent decide, and read its decision in the step's `when`."
        )
        return cel.failing(f"not carried over: {why}")

    def _as_before(self, placed: Placed) -> str | None:
        """What runs on the same decisions as the step before it is skipped where that is."""
        same = (name for name in self._tellers(placed) if self._flow.guards[name] == placed.guard)
        return next((self._completed(name) for name in same), None)

    def _way(self, way: Way, placed: Placed) -> str:
        # A step before that ran says that the decisions on the way to it were taken.
        told: Way = frozenset()
        parts: list[str] = []
        alone = len(way) == 1
        for name in self._tellers(placed):
            for other in self._flow.guards[name] if len(self._flow.guards[name]) == 1 else ():
                if len(told) < len(other) and other <= way:
                    told, parts = other, [self._completed(name)]
        for step, holds in sorted(way - told, key=lambda decision: self._flow.position[decision[0]]):
            condition = self._condition_of(step)
            if not holds:
                condition = _NOT.get(condition, f"!({condition})")
            parts.append(condition if alone else _apart(condition))
        return " && ".join(parts)

    def _tellers(self, placed: Placed) -> list[str]:
        """Steps before this one that either ran or were skipped, by which this one can go."""
        if placed.joins is not None:
            return []
        return [name for name in placed.after if not self._chooses_items(name)]

    def _completed(self, name: str) -> str:
        return f"steps.{self._names[name]}.status == 'COMPLETED'"

    def _condition_of(self, name: str) -> str:
        step = self._plan.steps[name]
        # Only conditionals take decisions.
        return self._condition(step) if isinstance(step, Conditional) else "true"

    def _condition(self, step: Conditional) -> str:
        if step.id not in self._conditions:
            try:
                condition = conditions.translate(step.expression, self._references(step.id).reading)
            except CannotCarry as cannot:
                path = ("steps", step.id, "condition", "expression")
                self._account.lost(path, f"{cannot.message}: {step.expression[:120]}", cannot.fix)
                condition = cel.failing(f"not carried over: the condition of {step.id[:80]}")
            self._conditions[step.id] = condition
        return self._conditions[step.id]

    def _chooses_items(self, name: str) -> bool:
        """Whether its `when` is about items, so that the step itself is never skipped."""
        step = self._plan.steps[name]
        return isinstance(step, Loop) and step.most is not None

    def _input(self, step: Call, references: References) -> JsonObject:
        written: JsonObject = {}
        for key, value in step.input.items():
            try:
                written[key] = references.value(value)
            except CannotCarry as cannot:
                self._account.lost(("steps", step.id, "input_mapping", key), cannot.message, cannot.fix)
                written[key] = f"${{ {cel.failing(f'not carried over: {cannot.message}')} }}"
        return written

    def _references(self, reader: str, loop: dict[str, str] | None = None) -> References:
        return References(
            Surroundings(
                plan=self._plan,
                names=self._names,
                readable=partial(self._readable, reader),
                may_be_skipped=partial(self._may_be_skipped, reader),
                condition=self._condition,
                loop=loop or {},
                in_parts=self._in_parts,
            )
        )

    def _readable(self, reader: str, name: str) -> str:
        position = self._flow.position.get(name)
        if position is None:
            raise CannotCarry(
                f"'{name[:80]}' runs inside a loop, or never", "Read the output of the loop, or another step."
            )
        if position >= self._flow.position[reader]:
            raise CannotCarry(
                f"'{name[:80]}' runs later, so there is nothing to read yet", "Read an earlier step."
            )
        return f"steps.{self._names[name]}.output"

    def _may_be_skipped(self, reader: str, name: str) -> bool:
        return name in self._flow.calls and not implies(self._flow.guards[reader], self._flow.guards[name])

    def _deadline(self, name: str) -> JsonObject:
        seconds = self._flow.seconds.get(name)
        return {} if seconds is None else {"deadline": f"{seconds}s"}

    def _limit(self) -> int | None:
        limits: list[int] = []
        for name in self._flow.position:
            step = self._plan.steps[name]
            if isinstance(step, Parallel) and step.limit is not None and step.limit < len(step.members):
                limits.append(step.limit)
                self._account.note(
                    ("steps", name, "max_parallelism"), "it holds for the whole workflow, as `max_parallel`"
                )
        return min(limits, default=None)

    def _tell_of_names(self) -> None:
        changed = [(old, new) for old, new in self._names.items() if old != new]
        if changed:
            shown = ", ".join(f"'{old[:80]}' is {new}" for old, new in changed[:_MOST_SHOWN])
            more = f", and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else ""
            self._account.note(("steps",), f"steps are called by identifiers: {shown}{more}")

    def _tell_of_the_rest(self) -> None:
        bodies = (step.body for step in self._plan.steps.values() if isinstance(step, Loop))
        inside = {name for body in bodies for name in body}
        for name in self._plan.steps:
            if name not in self._flow.position and name not in inside:
                self._account.note(("steps", name), "the step is left out: no way leads to it")


def _of_loop(step: Loop, items: str) -> dict[str, str]:
    total = f"size({items})"
    if step.most is not None:
        total = f"({total} < {step.most} ? {total} : {step.most})"
    return {
        "item": "item",
        "index": "index",
        "total": total,
        "is_first": "(index == 0)",
        "is_last": f"(index + 1 == {total})",
    }


def _apart(condition: str) -> str:
    return f"({condition})" if any(sign in condition for sign in (" || ", " && ", " ? ")) else condition
