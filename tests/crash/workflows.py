"""The workflows of the crash tests: how each is written, how it may end, and what its user does meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeAlias, cast

import msgspec
from tests.crash.agents import CrashTestAgents
from tests.crash.client import RequestRefused, RunEvent, TrunklineClient
from tests.crash.history_checker import RequestedRun

from trunkline.jsontypes import Json, JsonObject

# By name: the dialect.
AGENTS = {
    "plain": "simple-a2a",
    "rpc": "jsonrpc-2.0",
    "flaky": "jsonrpc-2.0",
    "polled": "jsonrpc-2.0",
    "asking": "jsonrpc-2.0",
    "holding": "simple-a2a",
    "lasting": "jsonrpc-2.0",
    "cutting": "simple-a2a",
    "gated": "simple-a2a",
    "streaming": "a2a-0.3",
    "careless": "jsonrpc-2.0",
    "gone": "simple-a2a",
}
# Asked once, it is done: a poll takes a fifth of a second, and there are many cases.
AGENT_QUERIES = {"polled": "polls=1"}
# For a few runs: its failures open its breaker, and what it is asked next is a probe.
LIMITED_AGENTS: dict[str, JsonObject] = {
    "flaky": {"breaker": {"failures": 1, "open_ms": 50}, "rate": {"per_second": 1_000, "burst": 100}}
}

# By which steps choose them, the cheapest first. Nothing listens at the address of the one that is gone.
CHOSEN: dict[str, JsonObject] = {
    "gone": {"url": "http://127.0.0.1:1", "skills": ["say"], "cost": 0},
    "plain": {"skills": ["say"], "cost": 1},
    "holding": {"skills": ["hurry"], "cost": 0, "repeatable": True},
    "rpc": {"skills": ["hurry"], "cost": 1, "repeatable": True},
}

RESOLVED = "a person says so"


class WatchedRun(msgspec.Struct, frozen=True):
    """A run that somebody watches, and may do something about."""

    client: TrunklineClient
    agents: CrashTestAgents
    want: RequestedRun

    @property
    def run_id(self) -> str:
        assert self.want.run_id is not None, "it was started before it is watched"
        return self.want.run_id


Action: TypeAlias = Callable[[WatchedRun, RunEvent], Awaitable[None]]


class WorkflowKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of workflow. `react` is told every event, also those that an earlier life has seen."""

    name: str
    steps: str
    output: str
    react: Action
    # For an input key: status and output.
    ends: Callable[[str], list[tuple[str, Json]]]
    at_most_once: frozenset[str] = frozenset()

    @property
    def definition(self) -> bytes:
        return f"name: {self.name}\nsteps:\n{self.steps}\noutput: ${{ {self.output} }}\n".encode()

    def wanted(self, key: str) -> RequestedRun:
        return RequestedRun(key=key, ends=self.ends(key), at_most_once=self.at_most_once)


async def _watch(watched: WatchedRun, event: RunEvent) -> None:
    """Nothing to do but wait."""


async def _reply(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "RunWaiting" and (await _step(watched, "ask"))["status"] == "WAITING":
        await watched.client.send_command(f"/runs/{watched.run_id}/steps/ask/reply", {"text": "the blue one"})


async def _answer_task(watched: WatchedRun, event: RunEvent) -> None:
    # Once the task has been escalated, it has been listed twice.
    if event.type == "StepEscalated":
        try:
            await watched.client.send_command(f"/inbox/{watched.run_id}.ok/comments", {"text": "Soon"})
        except RequestRefused as exc:
            # It was answered before the process ended.
            if exc.status != HTTPStatus.NOT_FOUND:
                raise
        body: Json = {"answer": "approve", "data": {"text": "by a person"}}
        await watched.client.send_command(f"/runs/{watched.run_id}/steps/ok/reply", body)


async def _answer_inside(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "RunWaiting":
        await watched.client.send_command(f"/runs/{watched.run_id}/steps/outer/reply", {"answer": "approve"})


async def _resolve(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "RunWaiting":
        body: Json = {"outcome": "succeeded", "output": {"text": RESOLVED}}
        await watched.client.send_command(f"/runs/{watched.run_id}/steps/pay/resolve", body)


async def _send_events(watched: WatchedRun, event: RunEvent) -> None:
    # Sent before its step waits; the signal that lets it wait comes later.
    if event.type == "StepStarted" and event.data["step"] == "before":
        paid: Json = {"type": "paid", "key": watched.want.key, "id": f"paid {watched.run_id}", "data": "paid"}
        await watched.client.send_command("/events", paid)
    elif event.type == "StepWaiting" and event.data["step"] == "go":
        await watched.client.send_command(f"/runs/{watched.run_id}/signals/go")


async def _cancel_call(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "StepStarted":
        await watched.agents.called_for(watched.run_id)
        await _cancel(watched)


async def _cancel_nested(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "StepChildStarted":
        await watched.agents.called_for(str(event.data["run_id"]))
        await _cancel(watched)


async def _cancel_remote(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "StepWorking":
        await _cancel(watched)


async def _cancel(watched: WatchedRun) -> None:
    if (await watched.client.run(watched.run_id)).get("cancel_requested_at") is None:
        await watched.client.send_command(f"/runs/{watched.run_id}/cancel")
        # Of several lives at once none is the later one.
        if watched.agents.life_of is None:
            watched.want.cancelled_in = watched.agents.life


async def _pause_once(watched: WatchedRun, event: RunEvent) -> None:
    if event.type == "StepStarted" and event.data["step"] == "first":
        await watched.client.send_command(f"/runs/{watched.run_id}/pause")
    elif event.type == "RunPaused":
        await watched.client.send_command(f"/runs/{watched.run_id}/resume")


async def _step(watched: WatchedRun, name: str) -> JsonObject:
    run = await watched.client.run(watched.run_id)
    return next(step for step in cast("list[JsonObject]", run["steps"]) if step["name"] == name)


def _completed(text: str) -> Callable[[str], list[tuple[str, Json]]]:
    return lambda key: [("COMPLETED", text.replace("KEY", key))]


_SEQUENCE = """
  first: {agent: plain, input: {text: "${ input.key }"}}
  second: {agent: rpc, input: {text: "${ steps.first.output.text }"}}
  third: {agent: plain, input: {text: "${ steps.second.output.text }"}}
"""
_FAN = """
  split: {agent: plain, input: {text: "${ input.key }"}}
  left: {agent: plain, input: {text: "${ steps.split.output.text }"}}
  middle: {agent: rpc, input: {text: "${ steps.split.output.text }"}}
  right: {agent: plain, input: {text: "${ steps.split.output.text }"}}
  join:
    agent: rpc
    input: {text: "${ steps.left.output.text } ${ steps.middle.output.text } ${ steps.right.output.text }"}
"""
_RETRY = """
  try:
    agent: flaky
    input: {text: "${ input.key }"}
    retry: {max_attempts: 3, backoff: fixed, first_delay: 20ms}
  after: {agent: plain, input: {text: "${ steps.try.output.text }"}}
"""
_POLLED = """
  long: {agent: polled, timeout: 10m, input: {text: "${ input.key }"}}
  after: {agent: plain, input: {text: "${ steps.long.output.text }"}}
"""
_ASKING = """
  ask: {agent: asking, input: {text: "${ input.key }"}}
  after: {agent: plain, input: {text: "${ steps.ask.output.text }"}}
"""
_ONCE = """
  pay: {agent: plain, delivery: at_most_once, input: {text: "${ input.key }"}}
  after: {agent: rpc, input: {text: "${ steps.pay.output.text }"}}
"""
_CUTTING = """
  try:
    agent: cutting
    input: {text: "${ input.key }"}
    retry: {max_attempts: 3, backoff: fixed, first_delay: 20ms}
"""
_STREAMED = """
  tell: {agent: streaming, timeout: 10m, input: {text: "${ input.key }"}}
  after: {agent: plain, input: {text: "${ steps.tell.output.text }"}}
"""
_HOLDING = """
  hold: {agent: holding, timeout: 10m, input: {text: "${ input.key }"}}
"""
_LASTING = """
  last: {agent: lasting, timeout: 10m, input: {text: "${ input.key }"}}
"""
_GATED = """
  slow: {agent: gated, input: {text: "${ input.key }"}}
  after: {agent: plain, input: {text: "${ steps.slow.output.text }"}}
"""


_WITH_DEADLINES = """
  hold:
    agent: holding
    input: {text: "${ input.key }"}
    timeout: 250ms
    retry: {max_attempts: 2, backoff: fixed, first_delay: 20ms}
"""
_SKIPPING = """
  first: {agent: plain, input: {text: "${ input.key }"}}
  never: {agent: plain, when: "steps.first.output.text == 'no'", input: {text: "${ input.key }"}}
  last: {agent: rpc, needs: [never], input: {text: "${ steps.first.output.text }"}}
"""
_LOOP = """
  each:
    agent: rpc
    for_each: {items: [a, b, c], limit: 2}
    input: {text: "${ input.key }${ item }"}
  after: {agent: plain, input: {text: "${ steps.each.output[0].text } ${ steps.each.output[2].text }"}}
"""
_NESTED = """
  before: {agent: plain, input: {text: "${ input.key }"}}
  below: {workflow: below, input: {text: "${ steps.before.output.text }"}}
  after: {agent: rpc, input: {text: "${ steps.below.output }"}}
"""
_NESTED_LOOP = """
  below:
    workflow: below
    for_each: {items: [a, b, c], limit: 2}
    input: {text: "${ input.key }${ item }"}
"""
_NESTED_HOLDING = """
  below: {workflow: held, input: {text: "${ input.key }"}}
"""
_BLOCKS = """
  before: {agent: plain, input: {text: "${ input.key }"}}
  each:
    for_each: [a, b]
    steps:
      first: {agent: rpc, input: {text: "${ steps.before.output.text }${ item }"}}
      inner: {steps: {last: {agent: plain, input: {text: "${ steps.first.output.text }"}}}}
    output: ${ steps.inner.output.text }
  after: {agent: rpc, input: {text: "${ steps.each.output[0] } ${ steps.each.output[1] }"}}
"""
_ROUNDS = """
  write:
    repeat: {until: "round == 3", delay: 10ms}
    steps:
      draft:
        agent: plain
        input: {text: "${ round == 1 ? input.key : previous.steps.choose.output.text }"}
      choose:
        switch:
          - {when: "round == 2", steps: {two: {agent: rpc, input: {text: "${ steps.draft.output.text }"}}}}
          - {else: true, steps: {two: {agent: plain, input: {text: "${ steps.draft.output.text }"}}}}
      said: {set: {text: "${ steps.choose.output.text }"}}
    output: ${ steps.said.output }
"""
# What the workflows above begin.
BELOW = (
    b"{name: below, steps: {work: {agent: plain}}, output: '${ steps.work.output.text }'}",
    b"{name: held, steps: {work: {agent: holding, timeout: 10m}}}",
)
_SLEEPING = """
  before: {agent: plain, input: {text: "${ input.key }"}}
  pause: {sleep: 50ms, needs: [before]}
  after: {set: {text: "${ steps.before.output.text }!"}, needs: [pause]}
"""
_AWAITING = """
  before: {agent: plain, input: {text: "${ input.key }"}}
  go: {wait_for: {signal: go, timeout: 10m}, needs: [before]}
  paid: {wait_for: {event: paid, key: "${ input.key }"}, needs: [go]}
  after: {agent: rpc, input: {text: "${ steps.before.output.text } ${ steps.paid.output.data }"}}
"""
_APPROVED = """
  before: {agent: plain, input: {text: "${ input.key }"}}
  ok:
    needs: [before]
    ask:
      title: Approve it
      options: [approve, reject]
      form: {type: object, required: [text], properties: {text: {type: string}}}
      assignees: [ada]
      due: 1d
      escalate: [{after: 10ms, to: [boss]}]
      timeout: 10m
  after: {agent: rpc, input: {text: "${ steps.before.output.text } ${ steps.ok.output.data.text }"}}
"""
# What a block inside a block asks is answered at the step of the run that was started.
_APPROVED_INSIDE = """
  outer:
    steps:
      inner:
        steps:
          before: {agent: plain, input: {text: "${ input.key }"}}
          ok: {needs: [before], ask: {title: Approve it, options: [approve], timeout: 10m}}
        output: ${ steps.before.output.text }
  after: {agent: rpc, input: {text: "${ steps.outer.output }"}}
"""
_REPAIRED = """
  answer:
    agent: careless
    input: {text: "${ input.key }"}
    output_schema: {type: object, required: [text], properties: {text: {type: string}}}
  after: {agent: plain, input: {text: "${ steps.answer.output.data.text }"}}
"""
# A process that ended while it called may have reached the agent: only a repeatable step goes on with another one.
_FAILED_OVER = """
  say: {skill: say, select: cheapest, repeatable: true, input: {text: "${ input.key }"}}
  after: {agent: rpc, input: {text: "${ steps.say.output.text }"}}
"""
_HEDGED = """
  hurry:
    skill: hurry
    select: cheapest
    hedge: {after: 50ms}
    timeout: 10m
    input: {text: "${ input.key }"}
  after: {agent: plain, input: {text: "${ steps.hurry.output.text }"}}
"""
# Both do the same: one of them makes the call, the other waits for its output.
_CACHED = """
  one: {agent: plain, cache: {key: "${ input.key }"}, input: {text: "${ input.key }"}}
  two: {agent: plain, cache: {key: "${ input.key }"}, input: {text: "${ input.key }"}}
  after: {agent: rpc, needs: [one], input: {text: "${ steps.two.output.text }"}}
"""
# Its last step always fails, and then the others are undone, the second one first.
_UNDONE = """
  first:
    agent: plain
    input: {text: "${ input.key }"}
    compensate: {agent: plain, input: {text: "${ 'undo ' + steps.first.output.text }"}}
  second:
    agent: rpc
    input: {text: "${ steps.first.output.text }"}
    compensate: {agent: rpc, input: {text: "${ 'undo ' + steps.second.output.text }"}}
  third: {set: {no: "${ steps.second.output.missing }"}}
"""
_RACE = """
  quick: {agent: plain, input: {text: "${ input.key }"}}
  hold: {agent: holding, timeout: 10m, input: {text: "${ input.key }"}}
  last: {agent: rpc, needs: [quick, hold], join: any, input: {text: "${ steps.quick.output.text }"}}
"""


def _once_ends(key: str) -> list[tuple[str, Json]]:
    return [("COMPLETED", f"rpc(plain({key}))"), ("COMPLETED", f"rpc({RESOLVED})")]


def _cancelled(key: str) -> list[tuple[str, Json]]:
    return [("CANCELLED", None)]


def _failed(key: str) -> list[tuple[str, Json]]:
    return [("FAILED", None)]


# For the graceful stop alone: the test says when its agent answers.
GATED = WorkflowKind(
    name="gated",
    steps=_GATED,
    output="steps.after.output.text",
    react=_watch,
    ends=_completed("plain(gated(KEY))"),
)
KINDS = (
    WorkflowKind(
        name="sequence",
        steps=_SEQUENCE,
        output="steps.third.output.text",
        react=_watch,
        ends=_completed("plain(rpc(plain(KEY)))"),
    ),
    WorkflowKind(
        name="fan",
        steps=_FAN,
        output="steps.join.output.text",
        react=_watch,
        ends=_completed("rpc(plain(plain(KEY)) rpc(plain(KEY)) plain(plain(KEY)))"),
    ),
    WorkflowKind(
        name="loop",
        steps=_LOOP,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(rpc(KEYa) rpc(KEYc))"),
    ),
    WorkflowKind(
        name="nested",
        steps=_NESTED,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("rpc(plain(plain(KEY)))"),
    ),
    WorkflowKind(
        name="race",
        steps=_RACE,
        output="steps.last.output.text",
        react=_watch,
        ends=_completed("rpc(plain(KEY))"),
    ),
    WorkflowKind(
        name="retry",
        steps=_RETRY,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(flaky(KEY))"),
    ),
    WorkflowKind(
        name="polled",
        steps=_POLLED,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(polled)"),
    ),
    WorkflowKind(
        name="asking",
        steps=_ASKING,
        output="steps.after.output.text",
        react=_reply,
        ends=_completed("plain(asked(the blue one))"),
    ),
    WorkflowKind(
        name="once",
        steps=_ONCE,
        output="steps.after.output.text",
        react=_resolve,
        ends=_once_ends,
        at_most_once=frozenset({"pay"}),
    ),
    WorkflowKind(
        name="cutting",
        steps=_CUTTING,
        output="steps.try.output.text",
        react=_watch,
        ends=_completed("cutting(KEY)"),
    ),
    WorkflowKind(
        name="streamed",
        steps=_STREAMED,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(streaming(KEY))"),
    ),
    WorkflowKind(
        name="cancel_call",
        steps=_HOLDING,
        output="steps.hold.output.text",
        react=_cancel_call,
        ends=_cancelled,
    ),
    WorkflowKind(
        name="cancel_remote",
        steps=_LASTING,
        output="steps.last.output.text",
        react=_cancel_remote,
        ends=_cancelled,
    ),
)
# Those that take what the others leave out; not for every crash point.
MORE_KINDS = (
    WorkflowKind(
        name="paused",
        steps=_SEQUENCE,
        output="steps.third.output.text",
        react=_pause_once,
        ends=_completed("plain(rpc(plain(KEY)))"),
    ),
    WorkflowKind(
        name="nested_loop",
        steps=_NESTED_LOOP,
        output="steps.below.output[0] + steps.below.output[2]",
        react=_watch,
        ends=_completed("plain(KEYa)plain(KEYc)"),
    ),
    WorkflowKind(
        name="cancel_nested",
        steps=_NESTED_HOLDING,
        output="steps.below.output",
        react=_cancel_nested,
        ends=_cancelled,
    ),
    WorkflowKind(
        name="rounds",
        steps=_ROUNDS,
        output="steps.write.output.text",
        react=_watch,
        ends=_completed("plain(plain(rpc(plain(plain(plain(KEY))))))"),
    ),
    WorkflowKind(
        name="blocks",
        steps=_BLOCKS,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("rpc(plain(rpc(plain(KEY)a)) plain(rpc(plain(KEY)b)))"),
    ),
    WorkflowKind(
        name="sleeping",
        steps=_SLEEPING,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(KEY)!"),
    ),
    WorkflowKind(
        name="awaiting",
        steps=_AWAITING,
        output="steps.after.output.text",
        react=_send_events,
        ends=_completed("rpc(plain(KEY) paid)"),
    ),
    WorkflowKind(
        name="approved",
        steps=_APPROVED,
        output="steps.after.output.text",
        react=_answer_task,
        ends=_completed("rpc(plain(KEY) by a person)"),
    ),
    WorkflowKind(
        name="approved_inside",
        steps=_APPROVED_INSIDE,
        output="steps.after.output.text",
        react=_answer_inside,
        ends=_completed("rpc(plain(KEY))"),
    ),
    WorkflowKind(
        name="repaired",
        steps=_REPAIRED,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(corrected)"),
    ),
    WorkflowKind(
        name="failed_over",
        steps=_FAILED_OVER,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("rpc(plain(KEY))"),
    ),
    WorkflowKind(
        name="cached",
        steps=_CACHED,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("rpc(plain(KEY))"),
    ),
    WorkflowKind(
        name="hedged",
        steps=_HEDGED,
        output="steps.after.output.text",
        react=_watch,
        ends=_completed("plain(rpc(KEY))"),
    ),
    WorkflowKind(
        name="undone",
        steps=_UNDONE,
        output="steps.third.output",
        react=_watch,
        ends=_failed,
    ),
    WorkflowKind(
        name="hurried",
        steps=_WITH_DEADLINES,
        output="steps.hold.output.text",
        react=_watch,
        ends=_failed,
    ),
    WorkflowKind(
        name="skipping",
        steps=_SKIPPING,
        output="steps.last.output.text",
        react=_watch,
        ends=_completed("rpc(plain(KEY))"),
    ),
)
