"""
The order that a litecone workflow's steps run in.

There a step names the next one, and steps that hold others (parallel, conditional, fork_join) go on with their own next
step when those are over. Here a step names what it waits for. So the paths through the steps are followed, from the
first on, and each step that calls an agent gets what comes before it (`after`), and on which decisions it runs
(`guard`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trunkline.importing.litecone.decision_paths import ALWAYS, DecisionPaths, either, exclude, narrowed
from trunkline.importing.litecone.source_model import (
    ExtractedBranchStep,
    LiteconeAgentStep,
    LiteconeConditionalStep,
    LiteconeForkJoinStep,
    LiteconeLoopStep,
    LiteconeParallelStep,
    LiteconeStep,
    LiteconeWorkflow,
    TranslatedStep,
)
from trunkline.importing.report import ImportReport

# How many levels of nested steps are searched. Real workflows nest less.
_MAX_LEVELS = 200
_MAX_SHOWN = 6

# A step, or (True) the end of all that a step holds.
_Node = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class OrderedStep:
    """One step in the order."""

    step: TranslatedStep
    # The steps that have to be over.
    after: tuple[str, ...]
    guard: DecisionPaths
    # The fork whose branches `after` is.
    joins: LiteconeForkJoinStep | None


@dataclass(slots=True)
class StepOrder:
    # Steps that are called, each after all that it can wait for.
    calls: dict[str, OrderedStep] = field(default_factory=dict[str, OrderedStep])
    # Where every step stands in the order, those that hold others included, and on which decisions it is reached.
    position: dict[str, int] = field(default_factory=dict[str, int])
    guards: dict[str, DecisionPaths] = field(default_factory=dict[str, DecisionPaths])
    # How long a branch may take, for each of its steps.
    seconds: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class _IncomingPath:
    after: tuple[str, ...]
    guard: DecisionPaths
    joins: LiteconeForkJoinStep | None = None


def order_steps(
    plan: LiteconeWorkflow, entry: Sequence[str], report: ImportReport, *, in_a_row: bool = False
) -> StepOrder | None:
    """
    The order from a step on, or of steps in a row; None when it runs in a circle, which is reported.
    """
    successors = _Successors(plan, entry, report, in_a_row=in_a_row)
    edges = _reached(successors.edges(), (entry[0], False))
    order = _sorted(edges)
    if len(order) < len(edges):
        _report_cycle(edges, order, report)
        return None
    return _OrderBuilder(plan, edges, successors.seconds, report).through(order)


class _Successors:
    """Which step comes after which."""

    def __init__(
        self, plan: LiteconeWorkflow, entry: Sequence[str], report: ImportReport, *, in_a_row: bool
    ) -> None:
        self._plan = plan
        self._report = report
        # What a list says stands above `next_step`.
        self._following: dict[str, str | None] = {}
        # The steps that hold a step, from which it returns.
        self.returns: dict[str, dict[str, None]] = {}
        self.seconds: dict[str, int] = {}
        self._reported: set[tuple[str, str]] = set()
        # The forks whose lists have been read.
        self._listed: set[str] = set()
        if in_a_row:
            self._in_a_row(entry, ("steps",))
        self._explore(entry[0])

    def edges(self) -> dict[_Node, list[_Node]]:
        edges: dict[_Node, list[_Node]] = {}
        for name in self.returns:
            step = self._plan.steps[name]
            members = list(self.members(step))
            if isinstance(step, TranslatedStep):
                edges[name, False] = self._next_nodes(name)
            else:
                self._report_branches(step, members)
                edges[name, False] = [*((member, False) for member in members), (name, True)]
                edges[name, True] = self._next_nodes(name)
        return edges

    def _report_branches(self, step: LiteconeStep, members: Sequence[str]) -> None:
        for member in () if isinstance(step, LiteconeForkJoinStep) else members:
            following = self._next(member)
            if following is not None:
                self._report.note(
                    ("steps", member, "next_step"),
                    f"the branch continues with '{following[:80]}', as defined; litecone would end it after one step",
                )

    def members(self, step: LiteconeStep) -> Iterator[str]:
        match step:
            case LiteconeParallelStep():
                named = [(member, ("parallel_steps",)) for member in step.members]
            case LiteconeConditionalStep():
                branches = ((step.if_true, "if_true_step"), (step.if_false, "if_false_step"))
                named = [(branch, (key,)) for branch, key in branches if branch is not None]
            case LiteconeForkJoinStep():
                named = [
                    (branch.steps[0], ("fork_join_config", "branches", name))
                    for name, branch in step.branches.items()
                ]
            case LiteconeAgentStep() | LiteconeLoopStep() | ExtractedBranchStep():
                named = []
        for name, path in named:
            if name in self._plan.steps:
                yield name
            else:
                self._unknown(step.id, path, name)

    def _explore(self, first: str) -> None:
        self.returns[first] = {}
        waiting = deque([first])
        while waiting:
            while waiting:
                waiting.extend(self._visit(waiting.popleft()))
            # A list that was found later may say of a step what follows it.
            waiting.extend([found for name in list(self.returns) for found in self._visit(name)])

    def _visit(self, name: str) -> list[str]:
        """The steps of which something new is known."""
        step = self._plan.steps[name]
        if isinstance(step, LiteconeForkJoinStep) and name not in self._listed:
            self._listed.add(name)
            self._fork(step)
        reached = [(member, [name]) for member in self.members(step)]
        following = self._next(name)
        if following is not None:
            reached.append((following, list(self.returns[name])))
        changed: list[str] = []
        for other, returns in reached:
            known = self.returns.get(other)
            if known is None or any(holder not in known for holder in returns):
                self.returns[other] = (known or {}) | dict.fromkeys(returns)
                changed.append(other)
        return changed

    def _fork(self, fork: LiteconeForkJoinStep) -> None:
        for name, branch in fork.branches.items():
            self._in_a_row(branch.steps, ("steps", fork.id, "fork_join_config", "branches", name, "steps"))
            if branch.seconds is not None:
                self.seconds |= dict.fromkeys(branch.steps, branch.seconds)

    def _in_a_row(self, steps: Sequence[str], path: tuple[str, ...]) -> None:
        for name, following in zip(steps, (*steps[1:], None), strict=True):
            step = self._plan.steps.get(name)
            if step is None:
                continue
            if self._following.get(name, following) != following:
                self._report.lost(
                    path,
                    f"the step '{name}' is in two lists, but runs in only one of them",
                    "Add a separate step to the other list.",
                )
            elif step.next not in (None, following) and name not in self._following:
                self._report.note(
                    ("steps", name, "next_step"),
                    "'next_step' is left out, because the list that contains the step defines the order",
                )
            self._following[name] = following

    def _next(self, name: str) -> str | None:
        if name in self._following:
            following = self._following[name]
            if following is not None and following not in self._plan.steps:
                self._unknown(name, (), following)
                return None
            return following
        following = self._plan.steps[name].next
        if following is None:
            return None
        if following not in self._plan.steps:
            self._unknown(name, ("next_step",), following)
            return None
        # To name the step that holds it, or what comes after that, is a way to say that it ends here.
        holders = self._holders(name)
        ends = following in holders or any(self._plan.steps[holder].next == following for holder in holders)
        return None if ends else following

    def _holders(self, name: str) -> dict[str, None]:
        found: dict[str, None] = {}
        waiting = list(self.returns[name])
        while waiting and len(found) < _MAX_LEVELS:
            holder = waiting.pop()
            if holder not in found:
                found[holder] = None
                waiting += self.returns[holder]
        return found

    def _next_nodes(self, name: str) -> list[_Node]:
        following = self._next(name)
        if following is not None:
            return [(following, False)]
        return [(holder, True) for holder in self.returns[name]]

    def _unknown(self, name: str, path: tuple[str, ...], missing: str) -> None:
        if (name, missing) not in self._reported:
            self._reported.add((name, missing))
            self._report.lost(
                ("steps", name, *path),
                f"the step '{missing[:80]}' does not exist, or cannot be used",
                "Correct it in the source, and import again.",
            )


class _OrderBuilder:
    """Follows the paths, to each node after all that lead to it."""

    def __init__(
        self,
        plan: LiteconeWorkflow,
        edges: dict[_Node, list[_Node]],
        seconds: dict[str, int],
        report: ImportReport,
    ) -> None:
        self._plan = plan
        self._edges = edges
        self._report = report
        self._arrivals: dict[_Node, list[_IncomingPath]] = {}
        self._entered: dict[str, _IncomingPath] = {}
        self._flow = StepOrder(seconds=seconds)

    def through(self, order: Sequence[_Node]) -> StepOrder:
        self._arrivals[order[0]] = [_IncomingPath((), ALWAYS)]
        for node in order:
            name, is_end = node
            step = self._plan.steps[name]
            if is_end:
                self._leave(step, node)
            else:
                self._enter(step, node)
        return self._flow

    def _enter(self, step: LiteconeStep, node: _Node) -> None:
        arrival = self._entered[step.id] = self._arrived(step, self._arrivals[node])
        self._flow.position[step.id] = len(self._flow.position)
        self._flow.guards[step.id] = arrival.guard
        if isinstance(step, TranslatedStep):
            self._flow.calls[step.id] = OrderedStep(step, arrival.after, arrival.guard, arrival.joins)
            self._send(node, _IncomingPath((step.id,), arrival.guard))
            return
        for other in self._edges[node]:
            if other == (step.id, True):
                continue
            guard = arrival.guard
            if isinstance(step, LiteconeConditionalStep) and step.if_true != step.if_false:
                guard = narrowed(guard, step.id, holds=other[0] == step.if_true)
            self._arrivals.setdefault(other, []).append(_IncomingPath(arrival.after, guard, arrival.joins))

    def _leave(self, step: LiteconeStep, node: _Node) -> None:
        own, others = self._entered[step.id], self._arrivals.get(node, [])
        after = tuple(dict.fromkeys(name for arrival in others for name in arrival.after))
        for arrival in others:
            self._cannot_join(arrival.joins)
        if not after:
            self._send(node, own)
            return
        joins = step if isinstance(step, LiteconeForkJoinStep) and step.policy != "all" else None
        if joins is not None and len(after) != len(joins.branches):
            self._cannot_join(joins)
            joins = None
        self._send(node, _IncomingPath(after, own.guard, joins))

    def _send(self, node: _Node, arrival: _IncomingPath) -> None:
        if not self._edges[node]:
            self._cannot_join(arrival.joins)
        for other in self._edges[node]:
            self._arrivals.setdefault(other, []).append(arrival)

    def _arrived(self, step: LiteconeStep, arrivals: list[_IncomingPath]) -> _IncomingPath:
        if len(arrivals) == 1:
            return arrivals[0]
        guard = arrivals[0].guard
        for number, arrival in enumerate(arrivals):
            self._cannot_join(arrival.joins)
            if number and not exclude(guard, arrival.guard):
                self._report.lost(
                    ("steps", step.id),
                    "one run can reach the step on several paths; it runs once, after all of them",
                    "Add a separate step for each path.",
                )
            guard = either(guard, arrival.guard) if number else guard
        return _IncomingPath(
            tuple(dict.fromkeys(name for arrival in arrivals for name in arrival.after)), guard
        )

    def _cannot_join(self, fork: LiteconeForkJoinStep | None) -> None:
        if fork is not None:
            self._report.lost(
                ("steps", fork.id, "fork_join_config", "join_policy"),
                f"no following step can wait for '{fork.policy}' of the branches, so all of them must complete",
                "Add a step after the fork, or write `join` by hand.",
            )


def _reached(edges: dict[_Node, list[_Node]], first: _Node) -> dict[_Node, list[_Node]]:
    """Without what was looked at on a way that turned out to be none."""
    reached = _from(edges, first)
    # The end of a step that is never begun.
    idle = {(name, True) for name, is_end in reached if is_end and (name, False) not in reached}
    if idle:
        left = {node: [other for other in others if other not in idle] for node, others in edges.items()}
        return _reached(left, first)
    return {node: others for node, others in edges.items() if node in reached}


def _from(edges: dict[_Node, list[_Node]], first: _Node) -> set[_Node]:
    reached = {first}
    waiting = [first]
    while waiting:
        for other in edges[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def _sorted(edges: dict[_Node, list[_Node]]) -> list[_Node]:
    """The nodes, each after all that lead to it; those in a circle, and behind one, are missing."""
    leading = dict.fromkeys(edges, 0)
    for others in edges.values():
        for other in others:
            leading[other] += 1
    waiting = deque(node for node, count in leading.items() if not count)
    order: list[_Node] = []
    while waiting:
        node = waiting.popleft()
        order.append(node)
        for other in edges[node]:
            leading[other] -= 1
            if not leading[other]:
                waiting.append(other)
    return order


def _report_cycle(edges: dict[_Node, list[_Node]], order: Sequence[_Node], report: ImportReport) -> None:
    sorted_out = set(order)
    # Steps that only follow the cycle do not help to find it.
    left = {node: [other for other in others if other not in sorted_out] for node, others in edges.items()}
    node = next(node for node in left if node not in sorted_out and left[node])
    seen: dict[_Node, None] = {}
    while node not in seen and left[node]:
        seen[node] = None
        node = left[node][0]
    names = list(dict.fromkeys(name for name, _ in seen))
    names = names[names.index(node[0]) :] if node in seen else names
    shown = " -> ".join([*names[:_MAX_SHOWN], "…"] if len(names) > _MAX_SHOWN else [*names, node[0]])
    report.lost(
        ("steps", node[0]),
        f"the steps form a cycle: {shown}",
        "Workflows cannot contain cycles. Use a loop over a list, or move the repetition to an agent.",
    )
