"""The keys by which a step finds its agent: reads them, and reports what does not fit."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from trunkline.jsontypes import Json
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.validation_report import ValidationReport

Select = Literal["first", "round_robin", "least_busy", "cheapest", "fastest"]

# The default comes first.
SELECTS: tuple[Select, ...] = ("first", "round_robin", "least_busy", "cheapest", "fastest")

SKILL_ONLY_KEYS = ("tags", "input_modes", "select", "repeatable", "hedge")
ROUTING_KEYS = ("allow", "skill", *SKILL_ONLY_KEYS)
HEDGE_KEYS = ("after", "max")
ALLOW_KEYS = ("tag",)
MAX_ALLOWED = 100
MAX_NAME = 255
# As long as an agent's tags and skills may be.
MAX_WORD = 100
MAX_WORDS = 20
# Calls of one step at the same time, the first included.
DEFAULT_HEDGED_CALLS = 2
MAX_HEDGED_CALLS = 5


class AllowTag(Struct, frozen=True):
    """Any agent that has the tag."""

    tag: str


Allow: TypeAlias = tuple[str, ...] | AllowTag


class Hedge(Struct, frozen=True, omit_defaults=True):
    """When a slow call gets company, and how many calls there are at most."""

    # A duration.
    after: str
    max: int = DEFAULT_HEDGED_CALLS


class RoutingKeys(NamedTuple):
    """What a step says about its agent in place of a name."""

    agent_expression: str | None = None
    allow: Allow | None = None
    skill: str | None = None
    tags: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    select: Select = "first"
    repeatable: bool = False
    hedge: Hedge | None = None


def is_expression(value: Json | UnsetType) -> bool:
    return isinstance(value, str) and "${" in value


def read_routing(fields: FieldReader, report: ValidationReport) -> RoutingKeys:
    """Of a step that calls an agent."""
    agent, skill = fields.any("agent"), None
    if "skill" in fields:
        skill = fields.text("skill", MAX_WORD) or ""
        # Empty, as the canonical form has it.
        if agent not in (UNSET, ""):
            fields.error("agent", "a step has either 'agent' or 'skill'; remove one of them")
    else:
        for key in SKILL_ONLY_KEYS:
            if key in fields:
                fields.error(key, f"'{key}' applies only to a step with 'skill'; remove it")
    allow = _allow(fields, report)
    expression = agent if isinstance(agent, str) and is_expression(agent) and skill is None else None
    if expression is not None and "allow" not in fields:
        example = "allow: [MyAgent, OtherAgent] or allow: {tag: research}"
        fields.error("agent", f"an expression in 'agent' needs the agents that it may name; add {example}")
    if expression is None and "allow" in fields:
        fields.error("allow", "'allow' applies only to a step whose 'agent' is an expression; remove it")
    if skill is None:
        return RoutingKeys(expression, allow if expression is not None else None)
    repeatable = fields.boolean("repeatable") or False
    hedge = _hedge(fields, report)
    for key, is_given in (("hedge", "hedge" in fields), ("repeatable", repeatable)):
        if is_given and fields.any("delivery") == "at_most_once":
            fields.error(
                key,
                f"'{key}' may give the same work to two agents, which delivery: at_most_once rules out; remove one of "
                "them",
            )
    return RoutingKeys(
        skill=skill,
        tags=_words(fields, "tags", report),
        input_modes=_words(fields, "input_modes", report),
        select=fields.choice("select", SELECTS, "first"),
        repeatable=repeatable,
        hedge=hedge,
    )


def _allow(fields: FieldReader, report: ValidationReport) -> Allow:
    value = fields.any("allow")
    if value is UNSET:
        return ()
    path = (*fields.path, "allow")
    if isinstance(value, dict):
        return AllowTag(
            FieldReader(value, path, ALLOW_KEYS, report).required_text("tag", MAX_WORD, "research") or ""
        )
    if not isinstance(value, list):
        fields.error(
            "allow",
            f"'allow' must be a list of agents or a tag, {describe_value(value)}; use allow: [MyAgent]",
        )
        return ()
    if not 1 <= len(value) <= MAX_ALLOWED:
        fields.error("allow", f"'allow' must have 1 to {MAX_ALLOWED} agents, but it has {len(value)}")
        return ()
    names: list[str] = []
    for index, name in enumerate(value):
        if isinstance(name, str) and 1 <= len(name) <= MAX_NAME:
            names.append(name)
        else:
            report.error((*path, index), f"'allow' must list names of agents, {describe_value(name)}")
    return tuple(dict.fromkeys(names))


def _words(fields: FieldReader, key: str, report: ValidationReport) -> tuple[str, ...]:
    values = fields.list(key) or []
    if len(values) > MAX_WORDS:
        fields.error(key, f"'{key}' must have at most {MAX_WORDS} entries, but it has {len(values)}")
        return ()
    words: list[str] = []
    for index, word in enumerate(values):
        if isinstance(word, str) and 1 <= len(word) <= MAX_WORD:
            words.append(word)
        else:
            report.error(
                (*fields.path, key, index),
                f"'{key}' must list strings of 1 to {MAX_WORD} characters, {describe_value(word)}",
            )
    return tuple(dict.fromkeys(words))


def _hedge(fields: FieldReader, report: ValidationReport) -> Hedge | None:
    value = fields.mapping("hedge")
    if value is None:
        return None
    hedge = FieldReader(value, (*fields.path, "hedge"), HEDGE_KEYS, report)
    after = value.get("after")
    if "after" not in value:
        fields.error("hedge", "'after' is missing; add it, such as after: 5s")
    hedge.duration("after", positive=True)
    most = hedge.integer("max", 2, MAX_HEDGED_CALLS) or DEFAULT_HEDGED_CALLS
    return Hedge(after if isinstance(after, str) else "1s", most)
