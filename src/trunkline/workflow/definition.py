"""
A workflow as it was written: pure data, checked elsewhere.

The store keeps a definition in its canonical form, which is JSON in the workflow language itself: what comes
out can be read, changed and saved again. Equal content gives equal bytes, whatever the source looked like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, to_builtins

from trunkline.durations import format_duration, parse_duration
from trunkline.jsontypes import Json, JsonObject
from trunkline.publish_options import PublishOptions, publish_options_to_json, read_publish_options
from trunkline.retry_policy import RetryPolicy
from trunkline.workflow.actions.definitions import Ask, Sleep, StepKind, TaskRules, WaitFor
from trunkline.workflow.flow_control.definition import (
    FLOW_KEYS,
    FlowControl,
    flow_control_from_json,
    flow_control_to_json,
)
from trunkline.workflow.routing.cache import Cache
from trunkline.workflow.routing.keys import Allow, AllowTag, Hedge, Select
from trunkline.workflow.step_graph.step_names import compensation_name

Delivery = Literal["at_least_once", "at_most_once"]
Context = Literal["run", "step", "none", "caller"]
MessageSource = Literal["new", "caller"]
Backoff = Literal["fixed", "linear", "exponential"]
AfterFailure = Literal["fail", "continue"]
JoinPolicy = Literal["all", "any", "majority"]
EachMode = Literal["parallel", "sequential"]
AfterItem = Literal["stop", "continue", "collect"]
AfterRounds = Literal["fail", "continue"]
RunEnd = Literal["failed", "cancelled"]

# The default comes first, except for the backoff.
DELIVERIES: tuple[Delivery, ...] = ("at_least_once", "at_most_once")
CONTEXTS: tuple[Context, ...] = ("run", "step", "none", "caller")
MESSAGE_SOURCES: tuple[MessageSource, ...] = ("new", "caller")
BACKOFFS: tuple[Backoff, ...] = ("fixed", "linear", "exponential")
AFTER_FAILURE: tuple[AfterFailure, ...] = ("fail", "continue")
JOIN_POLICIES: tuple[JoinPolicy, ...] = ("all", "any", "majority")
EACH_MODES: tuple[EachMode, ...] = ("parallel", "sequential")
AFTER_ITEM: tuple[AfterItem, ...] = ("stop", "continue", "collect")
AFTER_ROUNDS: tuple[AfterRounds, ...] = ("fail", "continue")
RUN_ENDS: tuple[RunEnd, ...] = ("failed", "cancelled")
# How a run ends whose work is undone, where nothing is said.
DEFAULT_COMPENSATE_ON: tuple[RunEnd, ...] = ("failed",)


class Goto(Struct, frozen=True, rename={"step": "goto"}):
    """Where a run goes on when the step has failed."""

    step: str


OnError = AfterFailure | Goto


class Join(Struct, frozen=True, omit_defaults=True):
    """How many of the steps in `needs` have to complete before the step begins."""

    policy: JoinPolicy = "all"
    # Instead of a policy.
    at_least: int | None = None
    # What has not completed by then is stopped.
    cancel_rest: bool = True


ALL = Join()

# How often an agent is asked to correct its output, where nothing is said.
DEFAULT_REPAIRS = 1
# Of one step at a time, where nothing is said.
DEFAULT_ITEMS_AT_ONCE = 100
# Of a step that is repeated, where nothing is said.
DEFAULT_ROUNDS = 10


class ForEach(Struct, frozen=True, omit_defaults=True):
    """One call for each item of a list."""

    # An expression that gives a list, or a list with expressions in it.
    items: str | list[Json]
    mode: EachMode = "parallel"
    # How many items are worked on at once, where that is in parallel.
    limit: int = DEFAULT_ITEMS_AT_ONCE
    # What follows when an item has failed.
    on_error: AfterItem = "stop"

    @property
    def at_once(self) -> int:
        return 1 if self.mode == "sequential" else self.limit


class Repeat(Struct, frozen=True, omit_defaults=True):
    """Runs a step again and again, round by round."""

    # CEL, without the ${ } around it; it reads the steps of the round that has just ended.
    until: str
    max_rounds: int = DEFAULT_ROUNDS
    # Between two rounds.
    delay: str = "0s"
    # What follows when the last round has ended without it.
    on_max: AfterRounds = "fail"


class Block(Struct, frozen=True):
    """Steps inside a step, with a scope of their own."""

    steps: dict[str, StepDefinition]
    # Left out: the outputs of the steps that no other step of the block needs.
    output: Json | UnsetType = UNSET


class Branch(Struct, frozen=True):
    """One of the blocks of a switch."""

    # CEL, without the ${ } around it; None: the branch for all that no other branch is for.
    when: str | None
    block: Block


class StepDefinition(Struct, frozen=True, kw_only=True):
    name: str
    # Empty where the step does not call an agent, or finds it when it begins.
    agent: str
    # An expression for the name of the agent, and which names it may have.
    agent_expression: str | None = None
    allow: Allow | None = None
    # Or what the agent has to offer: a skill, tags and input modes; and which of several is called.
    skill: str | None = None
    tags: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    select: Select = "first"
    # Whether two agents may do the work.
    repeatable: bool = False
    hedge: Hedge | None = None
    workflow: str | None = None
    # Of that workflow; left out: the latest there is when the step begins.
    version: int | None = None
    # Steps of its own, instead of a call.
    block: Block | None = None
    # Or several of them, of which one runs.
    switch: tuple[Branch, ...] | None = None
    # Its action, if it calls neither.
    set: dict[str, Json] | None = None
    sleep: Sleep | None = None
    wait_for: WaitFor | None = None
    ask: Ask | None = None
    # As written; what the expressions read comes on top of it (`step_graph`).
    needs: tuple[str, ...] = ()
    join: Join = ALL
    for_each: ForEach | None = None
    repeat: Repeat | None = None
    # Of an equal step that has completed, instead of a call.
    cache: Cache | None = None
    # CEL, without the ${ } around it.
    when: str | None = None
    # Left out: the run's input as it is.
    input: Json | UnsetType = UNSET
    retry: RetryPolicy | None = None
    timeout: timedelta | None = None
    # How long the step may take, all attempts together.
    deadline: timedelta | None = None
    # How long a question of the agent waits for a person; left out: as the settings say.
    reply_timeout: timedelta | None = None
    # Whose the agent's questions are; None: they are in the inbox for everyone.
    questions: TaskRules | None = None
    on_error: OnError = "fail"
    delivery: Delivery = "at_least_once"
    context: Context = "run"
    # `caller`: the agent gets the A2A message that started the run, unchanged.
    message: MessageSource = "new"
    # A JSON Schema that the data of the output must satisfy.
    output_schema: JsonObject | None = None
    # How often the agent is asked to correct an output that does not; left out: as the delivery says.
    repair: int | None = None
    # What undoes it, if the run does not complete.
    compensate: StepDefinition | None = None

    @property
    def max_repairs(self) -> int:
        if self.repair is not None:
            return self.repair
        return DEFAULT_REPAIRS if self.delivery == "at_least_once" else 0

    @property
    def is_routed(self) -> bool:
        """Whether it finds its agent when it begins."""
        return self.agent_expression is not None or self.skill is not None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All that are inside it."""
        branches = () if self.switch is None else tuple(branch.block for branch in self.switch)
        return branches if self.block is None else (self.block, *branches)

    @property
    def kind(self) -> StepKind:
        if self.workflow is not None:
            return "workflow"
        if self.block is not None or self.switch is not None:
            return "steps"
        if self.set is not None:
            return "set"
        if self.sleep is not None:
            return "sleep"
        if self.ask is not None:
            return "ask"
        return "agent" if self.wait_for is None else "wait_for"

    @property
    def action(self) -> Json | UnsetType:
        """What the step does in place of a call, with the expressions in it; UNSET: it calls."""
        match self.kind:
            case "agent" | "workflow" | "steps":
                return UNSET
            case "set":
                return self.set
            case "sleep":
                return to_builtins(self.sleep)
            case "wait_for":
                return None if self.wait_for is None else self.wait_for.template
            case "ask":
                return None if self.ask is None else self.ask.template


class WorkflowDefinition(Struct, frozen=True, kw_only=True):
    name: str
    description: str | None = None
    # A JSON Schema that the run's input must satisfy.
    input: JsonObject | None = None
    steps: dict[str, StepDefinition]
    # Left out: the outputs of the steps that no other step needs.
    output: Json | UnsetType = UNSET
    deadline: timedelta | None = None
    max_parallel: int | None = None
    # None: callers cannot reach it over A2A.
    publish: PublishOptions | None = None
    # Of its runs; values can contain expressions.
    labels: dict[str, str] = {}
    # Which of its runs start, and when; None: each one starts at once.
    flow: FlowControl | None = None
    # After which ends of a run the compensations of its steps run.
    compensate_on: tuple[RunEnd, ...] = DEFAULT_COMPENSATE_ON


# A workflow by its name and version; None: the latest.
WorkflowReference = tuple[str, int | None]


def all_steps(steps: Mapping[str, StepDefinition]) -> Iterator[StepDefinition]:
    """The steps, each followed by those inside it and by its compensation."""
    for step in steps.values():
        yield step
        for block in step.blocks:
            yield from all_steps(block.steps)
        if step.compensate is not None:
            yield from all_steps({step.name: step.compensate})


def called_agents(definition: WorkflowDefinition) -> tuple[str, ...]:
    """The agents that it names, also those of which a step chooses one; each once."""
    names: dict[str, None] = {}
    for step in all_steps(definition.steps):
        if step.agent:
            names[step.agent] = None
        if isinstance(step.allow, tuple):
            names.update(dict.fromkeys(step.allow))
    return tuple(names)


def child_workflows(definition: WorkflowDefinition) -> list[WorkflowReference]:
    """The workflows that its steps begin, each once."""
    return list(
        dict.fromkeys(
            (step.workflow, step.version) for step in all_steps(definition.steps) if step.workflow is not None
        )
    )


class _RetryForm(Struct, omit_defaults=True):
    max_attempts: int = 3
    backoff: Backoff = "exponential"
    first_delay: str = "1s"
    max_delay: str = "1m"
    jitter: bool = True
    on: tuple[str | int, ...] = RetryPolicy().on


class _StepForm(Struct, omit_defaults=True):
    # Written where it is empty, too: a version that does not know the step's kind fails the step, and calls no agent.
    agent: str
    allow: tuple[str, ...] | AllowTag | None = None
    skill: str | None = None
    tags: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    select: Select = "first"
    repeatable: bool = False
    hedge: Hedge | None = None
    workflow: str | None = None
    version: int | None = None
    steps: dict[str, _StepForm] | None = None
    output: Json | UnsetType = UNSET
    switch: tuple[_BranchForm, ...] | None = None
    set: dict[str, Json] | None = None
    sleep: Sleep | None = None
    wait_for: WaitFor | None = None
    ask: Ask | None = None
    needs: tuple[str, ...] = ()
    join: JoinPolicy | Join = "all"
    for_each: ForEach | None = None
    repeat: Repeat | None = None
    cache: Cache | None = None
    when: str | None = None
    input: Json | UnsetType = UNSET
    retry: _RetryForm | None = None
    timeout: str | None = None
    deadline: str | None = None
    reply_timeout: str | None = None
    questions: TaskRules | None = None
    on_error: OnError = "fail"
    delivery: Delivery = "at_least_once"
    context: Context = "run"
    message: MessageSource = "new"
    output_schema: JsonObject | None = None
    repair: int | None = None
    compensate: _StepForm | None = None


class _BranchForm(Struct, omit_defaults=True, rename={"otherwise": "else"}):
    steps: dict[str, _StepForm]
    when: str | None = None
    otherwise: bool = False
    output: Json | UnsetType = UNSET


class _WorkflowForm(Struct, omit_defaults=True):
    name: str
    steps: dict[str, _StepForm]
    description: str | None = None
    input: JsonObject | None = None
    output: Json | UnsetType = UNSET
    deadline: str | None = None
    max_parallel: int | None = None
    publish: Json = None
    labels: dict[str, str] | None = None
    concurrency: Json = None
    throttle: Json = None
    debounce: Json = None
    priority: Json = None
    compensate_on: tuple[RunEnd, ...] = DEFAULT_COMPENSATE_ON


_Form = TypeVar("_Form", _RetryForm, _StepForm, _WorkflowForm)

_decoder = msgspec.json.Decoder(_WorkflowForm)


def canonical_form(definition: WorkflowDefinition) -> bytes:
    """The one JSON text of a definition."""
    return msgspec.json.encode(
        _normal(
            _WorkflowForm(
                name=definition.name,
                description=definition.description,
                input=definition.input,
                steps=_step_forms(definition.steps),
                output=definition.output,
                deadline=_text(definition.deadline),
                max_parallel=definition.max_parallel,
                publish=publish_options_to_json(definition.publish),
                labels=definition.labels or None,
                **flow_control_to_json(definition.flow),
                compensate_on=definition.compensate_on,
            )
        )
    )


def definition_from_canonical(data: bytes) -> WorkflowDefinition:
    """The definition whose canonical form this is. Nothing is checked: it was, when it was saved."""
    form = _decoder.decode(data)
    return WorkflowDefinition(
        name=form.name,
        description=form.description,
        input=form.input,
        steps=_steps(form.steps),
        output=form.output,
        deadline=_duration(form.deadline),
        max_parallel=form.max_parallel,
        publish=_publish(form.publish),
        labels=form.labels or {},
        flow=flow_control_from_json(
            {key: value for key in FLOW_KEYS if (value := getattr(form, key)) is not None}
        ),
        compensate_on=form.compensate_on,
    )


def _publish(value: Json) -> PublishOptions | None:
    options = read_publish_options(value)
    return options if isinstance(options, PublishOptions) else None


def _step_forms(steps: Mapping[str, StepDefinition]) -> dict[str, _StepForm]:
    return {name: _step_form(step) for name, step in steps.items()}


def _step_form(step: StepDefinition) -> _StepForm:
    return _normal(
        _StepForm(
            agent=step.agent if step.agent_expression is None else step.agent_expression,
            allow=step.allow,
            skill=step.skill,
            tags=step.tags,
            input_modes=step.input_modes,
            select=step.select,
            repeatable=step.repeatable,
            hedge=step.hedge,
            workflow=step.workflow,
            version=step.version,
            steps=None if step.block is None else _step_forms(step.block.steps),
            output=UNSET if step.block is None else step.block.output,
            switch=None if step.switch is None else tuple(map(_branch_form, step.switch)),
            set=step.set,
            sleep=step.sleep,
            wait_for=step.wait_for,
            ask=step.ask,
            needs=step.needs,
            join=step.join.policy if step.join == Join(step.join.policy) else step.join,
            for_each=step.for_each,
            repeat=step.repeat,
            cache=step.cache,
            when=step.when,
            input=step.input,
            retry=None if step.retry is None else _retry_form(step.retry),
            timeout=_text(step.timeout),
            deadline=_text(step.deadline),
            reply_timeout=_text(step.reply_timeout),
            questions=step.questions,
            on_error=step.on_error,
            delivery=step.delivery,
            context=step.context,
            message=step.message,
            output_schema=step.output_schema,
            repair=step.repair,
            compensate=None if step.compensate is None else _step_form(step.compensate),
        )
    )


def _branch_form(branch: Branch) -> _BranchForm:
    steps = _step_forms(branch.block.steps)
    return _BranchForm(steps, branch.when, branch.when is None, branch.block.output)


def _retry_form(policy: RetryPolicy) -> _RetryForm:
    return _normal(
        _RetryForm(
            max_attempts=policy.max_attempts,
            backoff=policy.backoff,
            first_delay=format_duration(policy.first_delay),
            max_delay=format_duration(policy.max_delay),
            jitter=policy.jitter,
            on=policy.on,
        )
    )


def _normal(form: _Form) -> _Form:
    # msgspec leaves out a value that is the default itself; one that only equals it would stay.
    fields = form.__struct_fields__[-len(form.__struct_defaults__) :]
    for name, default in zip(fields, form.__struct_defaults__, strict=True):
        if getattr(form, name) == default:
            setattr(form, name, default)
    return form


def _steps(forms: Mapping[str, _StepForm]) -> dict[str, StepDefinition]:
    return {name: _step(name, form) for name, form in forms.items()}


def _step(name: str, form: _StepForm) -> StepDefinition:
    return StepDefinition(
        name=name,
        # Only an expression has `allow`.
        agent=form.agent if form.allow is None else "",
        agent_expression=None if form.allow is None else form.agent,
        allow=form.allow,
        skill=form.skill,
        tags=form.tags,
        input_modes=form.input_modes,
        select=form.select,
        repeatable=form.repeatable,
        hedge=form.hedge,
        workflow=form.workflow,
        version=form.version,
        block=None if form.steps is None else Block(_steps(form.steps), form.output),
        switch=None if form.switch is None else tuple(map(_branch, form.switch)),
        set=form.set,
        sleep=form.sleep,
        wait_for=form.wait_for,
        ask=form.ask,
        needs=form.needs,
        join=form.join if isinstance(form.join, Join) else Join(form.join),
        for_each=form.for_each,
        repeat=form.repeat,
        cache=form.cache,
        when=form.when,
        input=form.input,
        retry=None if form.retry is None else _retry(form.retry),
        timeout=_duration(form.timeout),
        deadline=_duration(form.deadline),
        reply_timeout=_duration(form.reply_timeout),
        questions=form.questions,
        on_error=form.on_error,
        delivery=form.delivery,
        context=form.context,
        message=form.message,
        output_schema=form.output_schema,
        repair=form.repair,
        compensate=None if form.compensate is None else _step(compensation_name(name), form.compensate),
    )


def _branch(form: _BranchForm) -> Branch:
    return Branch(form.when, Block(_steps(form.steps), form.output))


def _retry(form: _RetryForm) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=form.max_attempts,
        backoff=form.backoff,
        first_delay=parse_duration(form.first_delay),
        max_delay=parse_duration(form.max_delay),
        jitter=form.jitter,
        on=form.on,
    )


def _text(duration: timedelta | None) -> str | None:
    return None if duration is None else format_duration(duration)


def _duration(text: str | None) -> timedelta | None:
    return None if text is None else parse_duration(text)
