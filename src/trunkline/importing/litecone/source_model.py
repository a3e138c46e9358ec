"""
litecone's workflows as they are written.

    {"name": "…", "start_step": "step-1", "steps": {
       "step-1": {"id": "step-1", "agent_name": "…", "input_mapping": {"x": "${workflow.input.x}"},
                  "next_step": "step-2"},
       "step-2": {"id": "step-2", "type": "parallel", "parallel_steps": ["a", "b"], "max_parallelism": 2},
       "step-3": {"id": "step-3", "type": "conditional", "condition": {"expression": "…"},
                  "if_true_step": "a", "if_false_step": "b"},
       "step-4": {"id": "step-4", "type": "loop", "loop_config": {"collection": "${…}", "loop_body": ["a"],
                  "execution_mode": "sequential | parallel", "max_parallelism": 5, "max_iterations": 100,
                  "on_error": "stop | continue | collect"}},
       "step-5": {"id": "step-5", "type": "fork_join", "fork_join_config": {
                  "branches": {"one": {"steps": ["a", "b"], "timeout_seconds": 30}},
                  "join_policy": "all | any | majority | n_of_m", "n_required": 2, "branch_timeout_seconds": 60}}}}
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from trunkline.importing.litecone.source_fields import SourceFields
from trunkline.importing.report import ImportReport
from trunkline.jsontypes import JsonObject

Mode = Literal["sequential", "parallel"]
AfterItem = Literal["stop", "continue", "collect"]
Policy = Literal["all", "any", "majority", "n_of_m"]
Kind = Literal["agent", "parallel", "conditional", "loop", "fork_join"]

_KINDS: tuple[Kind, ...] = ("agent", "parallel", "conditional", "loop", "fork_join")
_MODES: tuple[Mode, ...] = ("sequential", "parallel")
_AFTER_ITEM: tuple[AfterItem, ...] = ("stop", "continue", "collect")
_POLICIES: tuple[Policy, ...] = ("all", "any", "majority", "n_of_m")
# The fields of each kind; one of another kind is not read there.
_FIELDS: dict[Kind, tuple[str, ...]] = {
    "agent": ("agent_name", "input_mapping"),
    "parallel": ("parallel_steps", "max_parallelism"),
    "conditional": ("condition", "if_true_step", "if_false_step"),
    "loop": ("loop_config",),
    "fork_join": ("fork_join_config",),
}
_COMMON_FIELDS = frozenset({"id", "type", "next_step"})
_MAX_SHOWN = 10
_FIX_SOURCE = "Correct it in the source, and import again."


class LiteconeAgentStep(Struct, frozen=True):
    """A step that calls an agent."""

    id: str
    next: str | None
    agent: str
    input: JsonObject


class LiteconeParallelStep(Struct, frozen=True):
    id: str
    next: str | None
    members: tuple[str, ...]
    limit: int | None


class LiteconeConditionalStep(Struct, frozen=True):
    id: str
    next: str | None
    expression: str
    if_true: str | None
    if_false: str | None


class LiteconeLoopStep(Struct, frozen=True):
    id: str
    next: str | None
    collection: str
    body: tuple[str, ...]
    mode: Mode
    limit: int | None
    most: int | None
    on_error: AfterItem


class ForkBranch(Struct, frozen=True):
    steps: tuple[str, ...]
    seconds: int | None


class LiteconeForkJoinStep(Struct, frozen=True):
    id: str
    next: str | None
    branches: dict[str, ForkBranch]
    policy: Policy
    required: int | None


class ExtractedBranchStep(Struct, frozen=True):
    """Steps in a row that become a workflow of their own; no source has such a step."""

    id: str
    next: str | None
    steps: tuple[str, ...]
    seconds: int | None


LiteconeStep: TypeAlias = (
    LiteconeAgentStep
    | LiteconeParallelStep
    | LiteconeConditionalStep
    | LiteconeLoopStep
    | LiteconeForkJoinStep
    | ExtractedBranchStep
)
# Steps that become a step here, each one.
TranslatedStep: TypeAlias = LiteconeAgentStep | LiteconeLoopStep | ExtractedBranchStep


class LiteconeWorkflow(Struct, frozen=True):
    name: str
    description: str | None
    start: str
    steps: dict[str, LiteconeStep]


def read_workflow(source: JsonObject, report: ImportReport) -> LiteconeWorkflow | None:
    """The workflow; None when there is too little to go on, which is then reported."""
    fields = SourceFields(source, (), report)
    name = fields.text("name") or fields.text("workflow_id")
    start = fields.text("start_step")
    described = fields.objects("steps")
    steps = _read_steps(described, report)
    fields.ignore(
        "workflow_id", "id", "version", "status", "created_at", "updated_at", "created_by", "updated_by",
        why="Trunkline assigns versions and ids when a workflow is saved",
    )  # fmt: skip
    description = fields.text("description")
    fields.finish()
    if name is None:
        report.lost(("name",), "the workflow has no name", _FIX_SOURCE)
    elif start in described and start not in steps:
        # Why it cannot be used has been told.
        return None
    elif start is None or start not in steps:
        report.lost(("start_step",), f"the first step {start!r} is not among the steps", _FIX_SOURCE)
    else:
        return LiteconeWorkflow(name, description, start, steps)
    return None


def _read_steps(described: dict[str, SourceFields], report: ImportReport) -> dict[str, LiteconeStep]:
    steps: dict[str, LiteconeStep] = {}
    for key, step_fields in described.items():
        given = step_fields.text("id")
        if given is not None and given != key:
            report.note(
                (*step_fields.path, "id"), f"the step is called '{key}' as its key says, not '{given[:80]}'"
            )
        step = _read_step(key, step_fields)
        if step is not None:
            steps[key] = step
    return steps


def _read_step(key: str, fields: SourceFields) -> LiteconeStep | None:
    kind = fields.text("type") or "agent"
    following = fields.text("next_step")
    for known in _KINDS:
        if kind == known or kind == known.replace("_", "-"):
            step = _STEPS[known](key, following, fields)
            others = (name for other in _KINDS if other != known for name in _FIELDS[other])
            fields.ignore(*others, why=f"a step of type '{known}' does not read it")
            fields.finish()
            return step
    fields.report.lost(
        (*fields.path, "type"),
        f"steps of type '{kind[:80]}' have no counterpart here{_other_fields(fields)}",
        "Move this work to an agent, and call that agent instead.",
    )
    return None


def _other_fields(fields: SourceFields) -> str:
    """What is left out together with the step."""
    others = [name for name in fields.names() if name not in _COMMON_FIELDS]
    if not others:
        return ""
    shown = ", ".join(f"'{name[:80]}'" for name in others[:_MAX_SHOWN])
    more = f" and {len(others) - _MAX_SHOWN} more" if len(others) > _MAX_SHOWN else ""
    return f"; left out with it: {shown}{more}"


def _missing(fields: SourceFields, name: str) -> None:
    fields.report.lost(
        fields.path, f"the step has no '{name}', or none that can be used, and is left out", _FIX_SOURCE
    )


def _read_call(key: str, following: str | None, fields: SourceFields) -> LiteconeAgentStep | None:
    agent = fields.text("agent_name")
    mapping = fields.any("input_mapping")
    if mapping is not None and not isinstance(mapping, dict):
        fields.report.lost((*fields.path, "input_mapping"), "'input_mapping' must be an object", _FIX_SOURCE)
        mapping = {}
    if agent is None:
        return _missing(fields, "agent_name")
    return LiteconeAgentStep(key, following, agent, mapping or {})


def _read_parallel(key: str, following: str | None, fields: SourceFields) -> LiteconeParallelStep | None:
    members = fields.texts("parallel_steps")
    limit = fields.integer("max_parallelism", 1)
    if not members:
        return _missing(fields, "parallel_steps")
    return LiteconeParallelStep(key, following, tuple(dict.fromkeys(members)), limit)


def _read_conditional(
    key: str, following: str | None, fields: SourceFields
) -> LiteconeConditionalStep | None:
    condition = fields.object("condition")
    expression = None
    if condition is not None:
        expression = condition.text("expression")
        condition.ignore("operator", why="litecone does not use it either")
        condition.finish()
    if_true, if_false = fields.text("if_true_step"), fields.text("if_false_step")
    if expression is None:
        return _missing(fields, "condition.expression")
    return LiteconeConditionalStep(key, following, expression, if_true, if_false)


def _read_loop(key: str, following: str | None, fields: SourceFields) -> LiteconeLoopStep | None:
    config = fields.object("loop_config")
    if config is None:
        return _missing(fields, "loop_config")
    collection, body = config.text("collection"), config.texts("loop_body")
    # Some descriptions of the format have the longer name.
    own = "error_policy" if config.any("error_policy") is not None else "on_error"
    loop = LiteconeLoopStep(
        key,
        following,
        collection or "",
        tuple(body),
        config.choice("execution_mode", _MODES, "sequential"),
        config.integer("max_parallelism", 1),
        config.integer("max_iterations", 1),
        config.choice(own, _AFTER_ITEM, "stop"),
    )
    config.finish()
    if not collection or not body:
        return _missing(config, "collection" if not collection else "loop_body")
    return loop


def _read_fork(key: str, following: str | None, fields: SourceFields) -> LiteconeForkJoinStep | None:
    config = fields.object("fork_join_config")
    if config is None:
        return _missing(fields, "fork_join_config")
    each = config.integer("branch_timeout_seconds", 1)
    branches: dict[str, ForkBranch] = {}
    for name, branch in config.objects("branches").items():
        steps, seconds = branch.texts("steps"), branch.integer("timeout_seconds", 1)
        branch.finish()
        if steps:
            branches[name] = ForkBranch(tuple(steps), seconds or each)
        else:
            _missing(branch, "steps")
    policy: Policy = config.choice("join_policy", _POLICIES, "all")
    required = config.integer("n_required", 1)
    config.finish()
    if not branches:
        return _missing(config, "branches")
    if policy == "n_of_m" and (required is None or required > len(branches)):
        config.report.lost(
            (*config.path, "n_required"),
            f"n_of_m needs 'n_required' from 1 to {len(branches)}; all branches are required instead",
            _FIX_SOURCE,
        )
        policy = "all"
    return LiteconeForkJoinStep(key, following, branches, policy, required)


_STEPS = {
    "agent": _read_call,
    "parallel": _read_parallel,
    "conditional": _read_conditional,
    "loop": _read_loop,
    "fork_join": _read_fork,
}
