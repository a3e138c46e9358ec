"""
Reads a definition out of a document's value, and reports everything that does not fit.

What is wrong is left out, so that one mistake is reported once and the rest is still looked at. Expressions
and the graph come later (`compile.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from trunkline.jsontypes import Json, JsonObject
from trunkline.publish_options import PublishFinding, PublishOptions, read_publish_options
from trunkline.retry_policy import MAX_ATTEMPTS, RetryPolicy
from trunkline.workflow.actions.compensation import compensation_of
from trunkline.workflow.actions.definitions import ACTION_KEYS, KIND_KEYS, Actions
from trunkline.workflow.actions.reader import CALL_ONLY_KEYS, read_actions
from trunkline.workflow.actions.task_rules import read_question_rules
from trunkline.workflow.definition import (
    AFTER_FAILURE,
    AFTER_ITEM,
    BACKOFFS,
    CONTEXTS,
    DEFAULT_COMPENSATE_ON,
    DEFAULT_ITEMS_AT_ONCE,
    DELIVERIES,
    EACH_MODES,
    JOIN_POLICIES,
    MESSAGE_SOURCES,
    RUN_ENDS,
    AfterFailure,
    Block,
    Branch,
    EachMode,
    ForEach,
    Goto,
    Join,
    JoinPolicy,
    MessageSource,
    OnError,
    RunEnd,
    StepDefinition,
    WorkflowDefinition,
    WorkflowReference,
)
from trunkline.workflow.document.locations import Path
from trunkline.workflow.expressions import KEYWORDS
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.flow_control.definition import FLOW_KEYS, FlowControl
from trunkline.workflow.flow_control.reader import read_flow_control
from trunkline.workflow.labels import read_labels
from trunkline.workflow.output_schema import read_output_schema, read_repair
from trunkline.workflow.repetition import (
    BRANCH_KEYS,
    branches_of,
    read_branch_condition,
    read_condition,
    read_repeat,
)
from trunkline.workflow.routing.cache import read_cache
from trunkline.workflow.routing.keys import ROUTING_KEYS, SKILL_ONLY_KEYS, RoutingKeys, read_routing
from trunkline.workflow.secret_references import check_secret_references, refuse_secret_references
from trunkline.workflow.step_graph.step_names import COMPENSATE, compensated_step, compensation_name
from trunkline.workflow.validation_report import ValidationReport

WORKFLOW_KEYS = (
    "name",
    "description",
    "input",
    "steps",
    "output",
    "deadline",
    "max_parallel",
    "publish",
    "labels",
    *FLOW_KEYS,
    "compensate_on",
    "$schema",
)
# Every workflow in litecone's format has this key. Trunkline's own format does not.
LITECONE_KEY = "start_step"
BLOCK_KEYS = ("steps", "output", "switch")
STEP_KEYS = (
    "agent", *ROUTING_KEYS, "workflow", "version", *BLOCK_KEYS, *ACTION_KEYS, "needs", "join", "for_each",
    "repeat", "cache", "when", "input", "retry", "timeout", "deadline", "reply_timeout", "questions", "on_error",
    "delivery", "context", "message", "output_schema", "repair", COMPENSATE,
)  # fmt: skip
# What is said of a call, with what to do about it where the step is a workflow.
AGENT_ONLY_KEYS = {
    "timeout": "use 'deadline', which applies to the step as a whole",
    "reply_timeout": "set it in the steps of that workflow",
    "questions": "set it in the steps of that workflow",
    "delivery": "set it in the steps of that workflow",
    "context": "set it in the steps of that workflow",
    "message": "set it in the steps of that workflow",
    "output_schema": "set it in the steps of that workflow",
    "repair": "set it in the steps of that workflow",
    "allow": "remove it",
    **dict.fromkeys(SKILL_ONLY_KEYS, "remove it"),
}
EACH_KEYS = ("items", "mode", "limit", "on_error")
JOIN_KEYS = ("policy", "at_least", "cancel_rest")
RETRY_KEYS = ("max_attempts", "backoff", "first_delay", "max_delay", "jitter", "on")

STEP_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
MAX_NAME = 255
MAX_VERSION = 2**31 - 1
MAX_DESCRIPTION = 10_000
MAX_PARALLEL = 10_000
# Validating as many takes about a second. To call an agent for many items, one step has `for_each`.
MAX_STEPS = 10_000
MAX_JOINED = 10_000
# Of one step at a time: what begins together is written in one transaction.
MAX_ITEMS_AT_ONCE = 1_000

_STEP_NAME = re.compile(STEP_NAME_PATTERN)
# A name is part of addresses.
_UNFIT_IN_NAME = re.compile(r"[\x00-\x1f\x7f/]|^\s|\s$")
# A browser takes them for the way up, and comes elsewhere.
DOTS = (".", "..")
_STATUS_CLASS = re.compile(r"[1-5]xx\Z")
_ERROR_CODE = re.compile(r"[a-z][a-z0-9_]*\Z")
_NUMBER = re.compile(r"-?[0-9]{1,6}\Z")


class KnownNames(NamedTuple):
    """What the language itself cannot know; None: unknown, and not checked."""

    agents: Collection[str] | None = None
    error_codes: Collection[str] | None = None
    # By name and version; None: the latest.
    workflows: Collection[WorkflowReference] | None = None
    # Those that lead back to this one, each with the path.
    cycles: Mapping[WorkflowReference, str] = MappingProxyType({})
    # Saved JSON Schemas by name.
    schemas: Mapping[str, JsonObject] | None = None


def read_definition(value: Json, known: KnownNames, report: ValidationReport) -> WorkflowDefinition | None:
    """The definition, as far as it can be read; None if the document is not a mapping."""
    if not isinstance(value, dict):
        report.error((), f"a workflow must be a mapping with 'name' and 'steps', {describe_value(value)}")
        return None
    if LITECONE_KEY in value:
        # Nearly every key of it would be a finding, and none of those would help.
        report.error(
            (LITECONE_KEY,),
            f"'{LITECONE_KEY}' belongs to litecone's workflow format; convert the workflow with: "
            "trunkline import --from litecone FILE",
        )
        return None
    fields = FieldReader(value, (), WORKFLOW_KEYS, report)
    name = _name(fields)
    known = known._replace(cycles={(name, None): f"{name} -> {name}", **known.cycles})
    return WorkflowDefinition(
        name=name,
        description=fields.text("description", MAX_DESCRIPTION),
        input=fields.mapping("input"),
        steps=_workflow_steps(fields, value, known, report),
        output=_output(fields, report),
        deadline=fields.duration("deadline", positive=True),
        max_parallel=fields.integer("max_parallel", 1, MAX_PARALLEL),
        publish=_publish(fields, report),
        labels=read_labels(fields, report),
        flow=_flow(fields, report),
        compensate_on=_compensate_on(fields),
    )


def _flow(fields: FieldReader, report: ValidationReport) -> FlowControl | None:
    flow = read_flow_control(fields, report)
    return None if flow == FlowControl() else flow


def _compensate_on(fields: FieldReader) -> tuple[RunEnd, ...]:
    values = fields.list("compensate_on")
    if values is None:
        return DEFAULT_COMPENSATE_ON
    ends: tuple[RunEnd, ...] = tuple(end for end in RUN_ENDS if end in values)
    if len(ends) != len(values):
        fields.error("compensate_on", f"'compensate_on' must list some of {', '.join(RUN_ENDS)}, each once")
    return ends


def _publish(fields: FieldReader, report: ValidationReport) -> PublishOptions | None:
    value = fields.any("publish")
    options = None if value is UNSET else read_publish_options(value)
    if isinstance(options, PublishFinding):
        key = ".".join(map(str, ("publish", *options.path)))
        report.error(("publish", *options.path), f"'{key}' is invalid: {options.message}")
        return None
    return options


def _output(fields: FieldReader, report: ValidationReport) -> Json | UnsetType:
    value = fields.any("output")
    if value is not UNSET:
        refuse_secret_references(value, (*fields.path, "output"), report)
    return value


def _name(fields: FieldReader) -> str:
    name = fields.required_text("name", MAX_NAME, "my-workflow") or ""
    if _UNFIT_IN_NAME.search(name):
        fields.error(
            "name", "'name' must not contain '/' or control characters, or start or end with a space"
        )
    if name in DOTS:
        fields.error("name", "'name' must not be '.' or '..'")
    return name


def _steps(fields: FieldReader, known: KnownNames, report: ValidationReport) -> dict[str, StepDefinition]:
    value = fields.any("steps")
    if value is UNSET or value is None or value == {}:
        path = fields.path if value is UNSET else (*fields.path, "steps")
        what = "a block" if fields.path else "a workflow"
        example = "steps: {first: {agent: MyAgent}}"
        report.error(path, f"'steps' is missing or empty; {what} needs at least one step, such as {example}")
        return {}
    if not isinstance(value, dict):
        fields.error("steps", f"'steps' must be a mapping of step names to steps, {describe_value(value)}")
        return {}
    path = (*fields.path, "steps")
    return {name: _step(name, step, (*path, name), known, report) for name, step in value.items()}


def _workflow_steps(
    fields: FieldReader, value: Json, known: KnownNames, report: ValidationReport
) -> dict[str, StepDefinition]:
    count = _count_steps(value)
    if count > MAX_STEPS:
        message = (
            f"'steps' has {count:,} steps, more than {MAX_STEPS:,}; move some of them to another workflow, and "
            "start it with 'workflow'"
        )
        fields.error("steps", message)
        return {}
    return _steps(fields, known, report)


def _count_steps(value: Json) -> int:
    """Those of a workflow or a block, and all steps inside them, before any is read."""
    if not isinstance(value, dict):
        return 0
    steps, branches = value.get("steps"), value.get("switch")
    count = sum(map(_count_steps, branches)) if isinstance(branches, list) else 0
    count += _count_steps(value.get(COMPENSATE)) + (COMPENSATE in value)
    return count + (len(steps) + sum(map(_count_steps, steps.values())) if isinstance(steps, dict) else 0)


def _block(fields: FieldReader, known: KnownNames, report: ValidationReport) -> Block | None:
    """The steps inside the step; None: it has none."""
    if fields.any("steps") is UNSET:
        if fields.any("output") is not UNSET:
            fields.error("output", "'output' applies only to a step with 'steps'; remove it")
        return None
    _refuse_other_kinds(fields, "steps")
    return Block(_steps(fields, known, report), _output(fields, report))


def _switch(fields: FieldReader, known: KnownNames, report: ValidationReport) -> tuple[Branch, ...] | None:
    """The branches of the step, of which one runs; None: it has none."""
    if fields.any("switch") is UNSET or fields.any("steps") is not UNSET:
        return None
    _refuse_other_kinds(fields, "switch")
    branches: list[Branch] = []
    values = branches_of(fields)
    for index, value in enumerate(values):
        path = (*fields.path, "switch", index)
        if not isinstance(value, dict):
            report.error(path, f"a branch must be a mapping with 'when' and 'steps', {describe_value(value)}")
            continue
        branch = FieldReader(value, path, BRANCH_KEYS, report)
        when = read_branch_condition(branch, is_last=index == len(values) - 1)
        branches.append(Branch(when, Block(_steps(branch, known, report), _output(branch, report))))
    return tuple(branches)


def _refuse_other_kinds(fields: FieldReader, kind: str) -> None:
    for key in (*KIND_KEYS, "switch"):
        # Empty, as the canonical form has it.
        if key != kind and fields.any(key) not in (UNSET, ""):
            fields.error(key, f"a step has either '{kind}' or '{key}'; remove one of them")
    for key, instead in CALL_ONLY_KEYS.items():
        if fields.any(key) is not UNSET:
            fields.error(key, f"'{key}' has no effect in a step with '{kind}'; {instead}")


def _step(name: str, value: Json, path: Path, known: KnownNames, report: ValidationReport) -> StepDefinition:
    # The name of a compensation follows from that of its step.
    written = compensated_step(name) or name
    if not _STEP_NAME.fullmatch(written):
        shown = name if len(name) <= 64 else f"{name[:64]}…"
        rule = "use up to 64 letters, digits and underscores, not starting with a digit"
        report.error(path, f"invalid step name '{shown}'; {rule}", on_key=True)
    elif name in KEYWORDS:
        report.error(
            path,
            f"invalid step name '{name}', because it is a reserved word in CEL; choose another",
            on_key=True,
        )
    if not isinstance(value, dict):
        report.error(
            path,
            "a step must be a mapping with 'agent', 'skill', 'workflow', 'steps' or an action, "
            f"{describe_value(value)}",
        )
        value = {"agent": "unknown"}
    fields = FieldReader(value, path, STEP_KEYS, report)
    block = _block(fields, known, report)
    switch = _switch(fields, known, report)
    has_steps = block is not None or switch is not None
    actions = Actions() if has_steps else read_actions(fields, report)
    calls = not has_steps and not actions.are_given
    workflow, version = _workflow(fields, known, report) if calls else (None, None)
    calls_agent = calls and workflow is None
    routing = read_routing(fields, report) if calls_agent else RoutingKeys()
    return StepDefinition(
        name=name,
        agent=_agent(fields, routing, known, report) if calls_agent else "",
        **routing._asdict(),
        workflow=workflow,
        version=version,
        block=block,
        switch=switch,
        set=actions.set,
        sleep=actions.sleep,
        wait_for=actions.wait_for,
        ask=actions.ask,
        needs=_needs(fields, report),
        join=_join(fields, report),
        for_each=_for_each(fields, report),
        repeat=read_repeat(fields, report),
        cache=read_cache(fields, report, is_call=has_steps or calls),
        when=read_condition(fields, "when", "input.count > 3"),
        input=_input(fields, report, called=calls_agent),
        retry=_retry(fields, known, report, _BLOCK_POLICY if has_steps else RetryPolicy()),
        timeout=fields.duration("timeout", positive=True),
        deadline=fields.duration("deadline", positive=True),
        reply_timeout=fields.duration("reply_timeout", positive=True),
        questions=read_question_rules(fields, report) if calls_agent else None,
        on_error=_on_error(fields, report),
        delivery=fields.choice("delivery", DELIVERIES, "at_least_once"),
        context=fields.choice("context", CONTEXTS, "run"),
        message=_message(fields),
        output_schema=read_output_schema(fields, known.schemas, report),
        repair=read_repair(fields),
        compensate=_compensation(name, fields, known, report),
    )


def _compensation(
    name: str, fields: FieldReader, known: KnownNames, report: ValidationReport
) -> StepDefinition | None:
    """The step that undoes this one; None: nothing does."""
    value = compensation_of(fields, report)
    if value is None:
        return None
    if len(fields.path) > len(("steps", name)):
        instead = "define it on the step that contains this one, which is then undone as a whole"
        fields.error(COMPENSATE, f"a step inside a block cannot have 'compensate'; {instead}")
    elif fields.any("repeat") is not UNSET and fields.any("steps") is UNSET:
        instead = "put it into a block with 'steps'"
        fields.error(COMPENSATE, f"a single step with 'repeat' cannot have 'compensate'; {instead}")
    return _step(compensation_name(name), value, (*fields.path, COMPENSATE), known, report)


def _message(fields: FieldReader) -> MessageSource:
    source: MessageSource = fields.choice("message", MESSAGE_SOURCES, "new")
    for key in ("input", "for_each"):
        if source == "caller" and fields.any(key) is not UNSET:
            fields.error(key, f"'{key}' has no effect on a step with message: caller; remove one of them")
    return source


def _input(fields: FieldReader, report: ValidationReport, *, called: bool) -> Json | UnsetType:
    value = fields.any("input")
    if value is not UNSET:
        check = check_secret_references if called else refuse_secret_references
        check(value, (*fields.path, "input"), report)
    return value


def _workflow(
    fields: FieldReader, known: KnownNames, report: ValidationReport
) -> tuple[str | None, int | None]:
    """The workflow that the step is a run of, and its version; None: it calls an agent."""
    version = fields.integer("version", 1, MAX_VERSION)
    if fields.any("workflow") is UNSET:
        if fields.any("version") is not UNSET:
            fields.error("version", "'version' applies only to a step with 'workflow'; remove it")
        return None, None
    name = fields.text("workflow", MAX_NAME)
    for key in ("agent", "skill"):
        # Empty, as the canonical form has it.
        if fields.any(key) not in (UNSET, ""):
            fields.error(key, f"a step has either '{key}' or 'workflow'; remove one of them")
    for key, instead in AGENT_ONLY_KEYS.items():
        if fields.any(key) is not UNSET:
            fields.error(
                key, f"'{key}' applies only to a step with 'agent', but this step has 'workflow'; {instead}"
            )
    if name is None:
        return "", version
    if (name, version) in known.cycles:
        path = known.cycles[name, version]
        fields.error("workflow", f"a workflow cannot start itself: {path}; remove one of these steps")
    elif known.workflows is not None and (name, version) not in known.workflows:
        what = f"'{name}'" if version is None else f"'{name}' with version {version}"
        message = f"unknown workflow {what}; save it before the first run: trunkline workflows apply"
        report.warning((*fields.path, "workflow"), message)
    return name, version


def _agent(fields: FieldReader, routing: RoutingKeys, known: KnownNames, report: ValidationReport) -> str:
    """The agent's name; empty where it is found when the step begins."""
    if routing.skill is not None:
        return ""
    if routing.agent_expression is not None:
        allowed = routing.allow if isinstance(routing.allow, tuple) else ()
        for index, name in enumerate(allowed):
            _warn_if_unknown(name, (*fields.path, "allow", index), known, report)
        return ""
    agent = fields.required_text("agent", MAX_NAME, "MyAgent") or ""
    if agent:
        _warn_if_unknown(agent, (*fields.path, "agent"), known, report)
    return agent


def _warn_if_unknown(agent: str, path: Path, known: KnownNames, report: ValidationReport) -> None:
    if known.agents is not None and agent not in known.agents:
        hint = (
            report.hint(agent, known.agents) or "; register it before the first run: trunkline agents create"
        )
        report.warning(path, f"the agent '{agent}' is not registered{hint}")


def _needs(fields: FieldReader, report: ValidationReport) -> tuple[str, ...]:
    needs: list[str] = []
    for index, need in enumerate(fields.list("needs") or []):
        if isinstance(need, str):
            needs.append(need)
        else:
            report.error(
                (*fields.path, "needs", index), f"'needs' must list step names, {describe_value(need)}"
            )
    return tuple(needs)


def _join(fields: FieldReader, report: ValidationReport) -> Join:
    value = fields.any("join")
    if not isinstance(value, dict):
        policy: JoinPolicy = fields.choice("join", JOIN_POLICIES, "all")
        return Join(policy)
    join = FieldReader(value, (*fields.path, "join"), JOIN_KEYS, report)
    policy = join.choice("policy", JOIN_POLICIES, "all")
    at_least = join.integer("at_least", 1, MAX_JOINED)
    if ("policy" in value) == ("at_least" in value):
        fields.error(
            "join", "'join' needs either 'policy' or 'at_least'; use one of them, such as at_least: 2"
        )
    cancel_rest = join.boolean("cancel_rest")
    return Join(policy, at_least, cancel_rest=True if cancel_rest is None else cancel_rest)


def _for_each(fields: FieldReader, report: ValidationReport) -> ForEach | None:
    value = fields.any("for_each")
    if value is UNSET:
        return None
    if not isinstance(value, dict):
        items = _items(value)
        if items is None:
            fields.error("for_each", f"'for_each' must be {_ITEMS}, {describe_value(value)}")
        return ForEach([] if items is None else items)
    each = FieldReader(value, (*fields.path, "for_each"), EACH_KEYS, report)
    items = _items(value.get("items"))
    if "items" not in value:
        fields.error("for_each", "'items' is missing; add it, such as items: ${ input.items }")
    elif items is None:
        each.error("items", f"'items' must be {_ITEMS}, {describe_value(value['items'])}")
    mode: EachMode = each.choice("mode", EACH_MODES, "parallel")
    if mode == "sequential" and "limit" in value:
        each.error("limit", "'limit' has no effect when items are processed one after another; remove it")
    return ForEach(
        [] if items is None else items,
        mode,
        each.integer("limit", 1, MAX_ITEMS_AT_ONCE) or DEFAULT_ITEMS_AT_ONCE,
        each.choice("on_error", AFTER_ITEM, "stop"),
    )


_ITEMS = "an expression that returns a list, such as ${ input.items }, or a list"


def _items(value: Json) -> str | list[Json] | None:
    if isinstance(value, list):
        return value
    return value if isinstance(value, str) and "${" in value else None


def _on_error(fields: FieldReader, report: ValidationReport) -> OnError:
    value = fields.any("on_error")
    if not isinstance(value, dict):
        after: AfterFailure = fields.choice("on_error", AFTER_FAILURE, "fail")
        return after
    goto = FieldReader(value, (*fields.path, "on_error"), ("goto",), report)
    step = goto.required_text("goto", MAX_NAME, "my_step")
    return "fail" if step is None else Goto(step)


# A block has no answer of its own: what is repeated is the block as a whole.
_BLOCK_POLICY = RetryPolicy(on=("block_failed",))


def _retry(
    fields: FieldReader, known: KnownNames, report: ValidationReport, default: RetryPolicy
) -> RetryPolicy | None:
    value = fields.mapping("retry")
    if value is None:
        return None
    retry = FieldReader(value, (*fields.path, "retry"), RETRY_KEYS, report)
    first = retry.duration("first_delay", positive=False)
    first_delay = default.first_delay if first is None else first
    longest = retry.duration("max_delay", positive=False)
    if longest is not None and longest < first_delay:
        retry.error("max_delay", "'max_delay' is shorter than 'first_delay'; make it at least as long")
    jitter = retry.boolean("jitter")
    on = retry.list("on")
    return RetryPolicy(
        max_attempts=retry.integer("max_attempts", 1, MAX_ATTEMPTS) or default.max_attempts,
        backoff=retry.choice("backoff", BACKOFFS, default.backoff),
        first_delay=first_delay,
        # The default must not cut a longer first delay that was asked for.
        max_delay=max(default.max_delay, first_delay) if longest is None else longest,
        jitter=default.jitter if jitter is None else jitter,
        on=default.on if on is None else _conditions(on, retry.path, known, report),
    )


def _conditions(
    values: list[Json], path: Path, known: KnownNames, report: ValidationReport
) -> tuple[str | int, ...]:
    conditions: list[str | int] = []
    for index, value in enumerate(values):
        condition = int(value) if isinstance(value, str) and _NUMBER.match(value) else value
        problem = _unfit_condition(condition, known, report)
        if problem is None and isinstance(condition, str | int):
            conditions.append(condition)
        else:
            report.error((*path, "on", index), f"{problem}")
    return tuple(conditions)


def _unfit_condition(value: Json, known: KnownNames, report: ValidationReport) -> str | None:
    match value:
        case int() if not isinstance(value, bool):
            if value < 0 or 100 <= value <= 599:
                return None
            return f"{value} is neither an HTTP status (100 to 599) nor a JSON-RPC code (below 0)"
        case "no_answer" | "any":
            return None
        case str() if _STATUS_CLASS.match(value):
            return None
        case str() if _ERROR_CODE.match(value):
            if known.error_codes is None or value in known.error_codes:
                return None
            hint = (
                report.hint(value, known.error_codes) or "; no_answer, any and 5xx are the usual conditions"
            )
            return f"unknown error code '{value}'{hint}"
        case _:
            kinds = "no_answer, any, a status such as 429 or 5xx, a JSON-RPC code, or an error code"
            return f"a retry condition must be {kinds}, {describe_value(value)}"
