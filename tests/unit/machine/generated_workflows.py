"""Workflows to try the machine on, drawn by hypothesis or from the seed of a random generator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, Protocol, TypeVar

import msgspec

from trunkline.retry_policy import RetryPolicy
from trunkline.workflow import (
    AllowTag,
    Ask,
    Block,
    Cache,
    CompiledWorkflow,
    Escalation,
    ForEach,
    Goto,
    Hedge,
    Join,
    Repeat,
    Sleep,
    SleepUntil,
    StepDefinition,
    WaitFor,
    WorkflowDefinition,
    compile_workflow,
)

T = TypeVar("T")

NAMES = "abcdef"


class Chooser(Protocol):
    def __call__(self, options: Sequence[T], /) -> T: ...


def generate_workflow(pick: Chooser) -> CompiledWorkflow:
    count = pick((1, 2, 3, 4, 5, 6, 6, 6))
    steps = {NAMES[index]: _generate_step(pick, index, count) for index in range(count)}
    return compile_workflow(
        WorkflowDefinition(
            name="w",
            steps={name: _possible(step, steps) for name, step in steps.items()},
            max_parallel=pick((None, 1, 2)),
            deadline=pick((None, timedelta(minutes=5))),
        )
    )


def _generate_step(pick: Chooser, index: int, count: int) -> StepDefinition:
    earlier = NAMES[:index]
    needs = {pick(earlier) for _ in range(pick((0, 1, 1, 2, 3)))} if earlier else set[str]()
    # Weighted: a run that fails at once teaches little.
    conditions = [None] * 12 + ["input.yes", "input.no", "input.missing"]
    conditions += [f"steps.{name}.output.ok" for name in earlier]
    inputs = ["${ input }"] * 8 + ["${ input.missing }", *(f"${{ steps.{name}.output }}" for name in earlier)]
    after_failure: list[Literal["fail", "continue"] | Goto] = ["fail", "continue", "continue", "continue"]
    after_failure += map(Goto, NAMES[index + 1 : count])
    for_each = pick((None, None, None, _generate_loop(pick)))
    if for_each is not None:
        conditions += ["index != 1", "item.missing"]
        inputs += ["${ item }", "${ index }"]
    step = StepDefinition(
        name=NAMES[index],
        agent=pick("AB"),
        needs=tuple(sorted(needs)),
        join=_generate_join(pick, len(needs)),
        for_each=for_each,
        cache=_generate_cache(pick),
        when=pick(conditions),
        input=pick(inputs),
        retry=pick((None, _generate_policy(pick))),
        deadline=pick((None, None, None, timedelta(minutes=2))),
        reply_timeout=pick((None, None, timedelta(minutes=1))),
        on_error=pick(after_failure),
        delivery=pick(("at_least_once", "at_least_once", "at_most_once")),
        context=pick(("run", "step", "none")),
    )
    match pick(
        (
            "agent",
            "agent",
            "agent",
            "agent",
            "agent",
            "skill",
            "skill",
            "named",
            "child",
            "child",
            "block",
            "set",
            "sleep",
            "wait_for",
            "ask",
        )
    ):
        case "agent":
            return step
        case "skill":
            return _generate_skill(pick, step)
        case "named":
            name = pick(("A", "A", "${ input.yes }", "B"))
            allow = pick((("A",), AllowTag("t")))
            return msgspec.structs.replace(step, agent="", agent_expression=name, allow=allow)
        case "child":
            return _without_agent(step, workflow="child")
        case "block":
            inside = StepDefinition(name="z", agent="A", input=step.input)
            rounds = Repeat("input.yes", pick((1, 2, 3)), pick(("0s", "10s")), pick(("fail", "continue")))
            repeat = pick((None, None, rounds))
            return _without_agent(step, input=msgspec.UNSET, block=Block({"z": inside}), repeat=repeat)
        case "set":
            return _without_agent(step, cache=None, input=msgspec.UNSET, set={"ok": step.input})
        case "wait_for":
            return _without_agent(step, cache=None, input=msgspec.UNSET, wait_for=_generate_wait(pick))
        case "ask":
            return _without_agent(step, cache=None, input=msgspec.UNSET, ask=_generate_ask(pick))
        case _:
            until = SleepUntil("2026-01-01T00:00:00Z")
            sleeps: tuple[Sleep, ...] = ("10s", "3m", "${ input.yes }", until)
            return _without_agent(step, cache=None, input=msgspec.UNSET, sleep=pick(sleeps))


def _generate_skill(pick: Chooser, step: StepDefinition) -> StepDefinition:
    once = step.delivery == "at_most_once"
    hedge = None if once else pick((None, Hedge("10s"), Hedge("5s", 3)))
    return msgspec.structs.replace(
        step,
        agent="",
        skill="s",
        select=pick(("first", "least_busy", "cheapest")),
        repeatable=not once and pick((True, False)),
        hedge=hedge,
        # A race begins late enough without it.
        cache=None if hedge is not None else step.cache,
    )


def _generate_wait(pick: Chooser) -> WaitFor:
    timeout = pick((None, "30s", "3m"))
    return WaitFor(
        event="e",
        key=pick((None, None, "${ input.missing }")),
        match=pick((None, None, "event.data.ok")),
        count=pick((1, 1, 2)),
        timeout=timeout,
        on_timeout=pick(("fail", "continue")) if timeout is not None else "fail",
    )


def _generate_ask(pick: Chooser) -> Ask:
    timeout = pick((None, "30s", "3m"))
    return Ask(
        title=pick(("t", "t", "t", "${ input.missing }")),
        options=pick(((), ("yes", "no"))),
        escalate=pick(((), (Escalation("1m", ("b",)), Escalation("10s", ("c",))))),
        timeout=timeout,
        on_timeout=pick(("fail", "continue")) if timeout is not None else "fail",
        required=pick((1, 1, 2)),
    )


def _without_agent(step: StepDefinition, **changes: object) -> StepDefinition:
    return msgspec.structs.replace(
        step, agent="", reply_timeout=None, delivery="at_least_once", context="run", **changes
    )


def _generate_cache(pick: Chooser) -> Cache | None:
    keys = ("${ input.yes }", "${ input.yes }", "${ input.missing }")
    return pick((None, None, None, Cache(pick(keys), scope=pick(("workflow", "global")))))


def _generate_loop(pick: Chooser) -> ForEach:
    return ForEach(
        pick(("${ input.list }", "${ input.list }", "${ input.none }", "${ input.yes }")),
        pick(("parallel", "parallel", "sequential")),
        pick((1, 2, 100)),
        pick(("stop", "continue", "collect")),
    )


def _generate_join(pick: Chooser, needs: int) -> Join:
    if needs < 2:
        return Join()
    mode = pick(("all", "any", "any", "majority", 1, 2))
    cancel_rest = pick((True, True, False)) if mode != "all" else True
    return (
        Join(at_least=mode, cancel_rest=cancel_rest)
        if isinstance(mode, int)
        else Join(mode, None, cancel_rest)
    )


def _possible(step: StepDefinition, steps: dict[str, StepDefinition]) -> StepDefinition:
    """A step cannot join those whose failure leads to it."""
    if any(steps[need].on_error == Goto(step.name) for need in step.needs):
        return msgspec.structs.replace(step, join=Join())
    return step


def _generate_policy(pick: Chooser) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=pick((1, 2, 3, 9)),
        backoff=pick(("fixed", "linear", "exponential")),
        jitter=pick((True, False)),
        on=pick((("no_answer", "5xx"), ("any",), (), ("agent_task_failed", 503))),
    )
