"""
Turns a definition into what the machine runs: expressions compiled, the graph complete and without a
cycle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json
from trunkline.workflow.actions.definitions import StepKind
from trunkline.workflow.definition import (
    Block,
    ForEach,
    StepDefinition,
    WorkflowDefinition,
    all_steps,
)
from trunkline.workflow.document.locations import Path
from trunkline.workflow.expressions import (
    EVENT_VARIABLES,
    FAILURE_VARIABLE,
    FOR_EACH_VARIABLES,
    ITEM,
    ROUND_VARIABLE,
    RUN_INPUT,
    CelCompiler,
    Condition,
    FirstCompleted,
    ReadSites,
    Scope,
    Template,
    TemplateCompiler,
    previous,
    scope_template,
)
from trunkline.workflow.flow_control.reader import compile_flow_key
from trunkline.workflow.input_schema import InputSchema, compile_form, compile_input_schema
from trunkline.workflow.labels import compile_labels, evaluate_labels
from trunkline.workflow.output_schema import compile_output_schema
from trunkline.workflow.publish_templates import NO_TEMPLATES, PublishTemplates, compile_publish_templates
from trunkline.workflow.secret_references import secret_references
from trunkline.workflow.step_graph.implied_blocks import with_block
from trunkline.workflow.step_graph.joins import CompiledJoin, compile_joins, steps_inside_joins
from trunkline.workflow.step_graph.links import StepLinks, link_steps
from trunkline.workflow.step_graph.step_names import (
    BLOCK_SEPARATOR,
    compensation_name,
    step_of_item,
    step_path,
)
from trunkline.workflow.validation_report import ValidationReport


@dataclass(frozen=True, slots=True)
class CompiledForEach:
    """A step that is one call for each item of a list."""

    items: Template
    definition: ForEach
    # Whether each item is asked `when`, and not the step as a whole.
    filters_items: bool


@dataclass(frozen=True, slots=True)
class CompiledStep:
    name: str
    # Its position in the definition.
    index: int
    definition: StepDefinition
    # Empty where the step does not call an agent, or finds it when it begins.
    agent: str
    # An expression for the agent's name.
    agent_expression: Template | None
    kind: StepKind
    # What it waits for: as written, what it reads, and the steps it catches.
    needs: tuple[str, ...]
    # The steps that wait for it.
    dependents: tuple[str, ...]
    # How many of which of its needs have to complete; None: all of them have to be over, however they ended.
    join: CompiledJoin | None
    # All that comes of it goes into joins, which decide what its failure means.
    inside_join: bool
    for_each: CompiledForEach | None
    # The steps inside it.
    block: CompiledWorkflow | None
    when: Condition | None
    # Of a step that waits for events: whether one of them is meant.
    match: Condition | None
    # Of a step that asks people: checks the data of their answers.
    form: InputSchema | None
    # Of a step that calls an agent: checks the data of its output.
    output_schema: InputSchema | None
    # Of a step with an action: what it says of it. Of a block: all that it reads of what is outside.
    input: Template
    # Of a step that calls an agent: the rules for its questions.
    questions: Template | None
    # Steps with the same value of it share an output.
    cache_key: Template | None
    # The steps whose failure leads here (`on_error: {goto: …}`).
    catches: tuple[str, ...]
    # Where secrets stand in its input: JSON pointer to name.
    secrets: dict[str, str]
    # By name, all that the steps of the workflow give to this agent: it may repeat any of them.
    told_secrets: tuple[str, ...]
    # Of a compensation: the step that it undoes.
    compensates: str | None = None

    @property
    def is_action(self) -> bool:
        """Whether it neither calls an agent nor starts another run."""
        return self.kind not in {"agent", "workflow", "steps"}

    @property
    def handles_failure(self) -> bool:
        """Whether the run goes on when the step has failed."""
        return self.inside_join or self.definition.on_error != "fail"


@dataclass(frozen=True, slots=True)
class CompiledRound:
    """How a round of a repeated block ends."""

    until: Condition
    # The steps of the block that the next round reads.
    carried: tuple[str, ...]


class CompiledWorkflow:
    """A definition, ready to run."""

    def __init__(
        self,
        definition: WorkflowDefinition,
        steps: dict[str, CompiledStep],
        output: Template | None,
        input_schema: InputSchema | None,
        labels: Mapping[str, Template] = MappingProxyType({}),
        round_: CompiledRound | None = None,
        publish: PublishTemplates = NO_TEMPLATES,
        flow_key: Template | None = None,
        compensations: Mapping[str, CompiledStep] = MappingProxyType({}),
    ) -> None:
        self.definition = definition
        # In the order of the definition.
        self.steps = steps
        # What undoes its steps, by the names under which it runs.
        self.compensations = compensations
        self.output = output
        self._input_schema = input_schema
        self.labels = labels
        # Of a block that is repeated.
        self.round = round_
        self.publish = publish
        # By which its runs count together for its flow control.
        self.flow_key = flow_key
        self.has_cached_steps = any(step.cache_key is not None for step in steps.values())

    def plan(self, name: str) -> CompiledStep:
        """Of a step, of an item of one (`research[17]`), or of a compensation (`compensate:research`)."""
        found = self.steps.get(name) or self.compensations.get(name)
        if found is not None:
            return found
        step = step_of_item(name)
        return self.steps.get(step) or self.compensations[step]

    def compensation(self, step: str) -> CompiledStep | None:
        """What undoes a step of it."""
        return self.compensations.get(compensation_name(step))

    @property
    def has_compensations(self) -> bool:
        """Whether a step of it can be undone."""
        return bool(self.compensations)

    def block(self, path: str | None) -> CompiledWorkflow:
        """The steps inside a step, by the names of the steps on the way to it; None: the workflow itself."""
        found = self
        for name in () if path is None else path.split(BLOCK_SEPARATOR):
            plan = found.steps.get(name) or found.compensations.get(name)
            if plan is None or plan.block is None:
                raise Invalid(f"Workflow {self.definition.name} has no block {path}.")
            found = plan.block
        return found

    @property
    def step_count(self) -> int:
        """With the steps inside blocks."""
        own = self.compensations.values()
        plans = (*self.steps.values(), *own)
        inside = sum(plan.block.step_count for plan in plans if plan.block is not None) + len(own)
        return len(self.steps) + inside

    @property
    def max_parallel(self) -> int | None:
        return self.definition.max_parallel

    @property
    def deadline(self) -> timedelta | None:
        return self.definition.deadline

    @property
    def input_schema_problem(self) -> str | None:
        """Why the input schema cannot check any input."""
        return None if self._input_schema is None else self._input_schema.too_complex

    def check_input(self, value: Json) -> list[Finding]:
        """What is wrong with a run's input; empty when it is right or the workflow does not say."""
        return [] if self._input_schema is None else self._input_schema.check(value)

    @property
    def has_labels(self) -> bool:
        return bool(self.labels)

    def evaluate_labels(self, scope: Scope) -> dict[str, str]:
        """The labels that a run begins with; raises `Invalid` if they have no usable value."""
        return evaluate_labels(self.labels, scope, self.definition.name)


def compile_definition(definition: WorkflowDefinition, report: ValidationReport) -> CompiledWorkflow:
    """The workflow of a definition; it is usable when nothing was reported as an error."""
    known_secrets: dict[str, set[str]] = {}
    for step in all_steps(definition.steps):
        known_secrets.setdefault(step.agent, set()).update(_secrets(step).values())
    _share_secrets_of_routed_steps(known_secrets)
    engine = CelCompiler(definition.steps)
    compiler = TemplateCompiler(engine, report)
    labels = compile_labels(definition.labels, compiler, report)
    scope = _compile_scope(definition, compiler, report, known_secrets)
    input_schema = compile_input_schema(definition.input, report)
    publish = compile_publish_templates(definition.publish, engine, compiler, report)
    flow_key = compile_flow_key(definition.flow, report)
    return CompiledWorkflow(
        definition,
        scope.steps,
        scope.output,
        input_schema,
        labels,
        publish=publish,
        flow_key=flow_key,
        compensations=scope.compensations,
    )


def _share_secrets_of_routed_steps(known_secrets: dict[str, set[str]]) -> None:
    """A step without the name of an agent may give its secrets to any of them, and call one that has others."""
    shared = known_secrets.get("")
    if shared:
        for names in known_secrets.values():
            names.update(shared)
    known_secrets[""] = set[str]().union(*known_secrets.values())


class _CompiledScope(NamedTuple):
    """The steps of a workflow, or of a block."""

    steps: dict[str, CompiledStep]
    output: Template | None
    # What it reads, and where first. What has no place is read by default.
    reads: frozenset[str]
    sites: ReadSites
    compensations: dict[str, CompiledStep]


def _compile_scope(
    definition: WorkflowDefinition,
    compiler: TemplateCompiler,
    report: ValidationReport,
    known_secrets: Mapping[str, set[str]],
) -> _CompiledScope:
    # A single step that is repeated stands where the block would.
    singles = {
        name for name, step in definition.steps.items() if step.repeat is not None and step.block is None
    }
    definition = msgspec.structs.replace(
        definition, steps={name: with_block(step) for name, step in definition.steps.items()}
    )
    parts = {
        name: _parts(step, definition, compiler, report, known_secrets, () if name in singles else None)
        for name, step in definition.steps.items()
    }
    links = link_steps(definition, {name: part.sites for name, part in parts.items()}, report)
    joins = compile_joins(definition, links, report)
    inside_joins = frozenset[str]() if report.errors else steps_inside_joins(links, joins)
    steps = {
        name: _step(
            index,
            step,
            parts[name],
            links[name],
            joins.get(name),
            name in inside_joins,
            known_secrets.get(step.agent, set()) if step.agent or step.is_routed else set(),
        )
        for index, (name, step) in enumerate(definition.steps.items())
    }
    output, sites = None, ReadSites()
    if definition.output is not UNSET:
        output, sites = compiler.template(definition.output, ("output",))
    undoing = {
        name: _compensation_parts(step, step.compensate, definition, compiler, report, known_secrets)
        for name, step in definition.steps.items()
        if step.compensate is not None
    }
    compensations = _compensations(steps, undoing, known_secrets)
    for part in (*parts.values(), *undoing.values()):
        sites = {**part.sites, **sites}
    reads = frozenset(sites).union(*(part.reads for part in (*parts.values(), *undoing.values())))
    return _CompiledScope(steps, output, reads, sites, compensations)


def _compensation_parts(
    step: StepDefinition,
    compensation: StepDefinition,
    definition: WorkflowDefinition,
    compiler: TemplateCompiler,
    report: ValidationReport,
    known_secrets: Mapping[str, set[str]],
) -> _CompiledExpressions:
    own: tuple[str, ...] = (FAILURE_VARIABLE,)
    if step.for_each is not None:
        own = (*own, *FOR_EACH_VARIABLES)
        compiler = compiler.for_items()
    compiler = compiler.for_compensation()
    parts = _parts(compensation, definition, compiler, report, known_secrets, None)
    sites = {name: site for name, site in parts.sites.items() if name not in own}
    return parts._replace(sites=sites, reads=parts.reads.difference(own))


def _compensations(
    steps: Mapping[str, CompiledStep],
    undoing: Mapping[str, _CompiledExpressions],
    known_secrets: Mapping[str, set[str]],
) -> dict[str, CompiledStep]:
    """What undoes the steps, by the names under which it runs."""
    found: dict[str, CompiledStep] = {}
    for name, plan in steps.items():
        step, undo = plan.definition.compensate, compensation_name(name)
        if step is not None:
            secrets = known_secrets.get(step.agent, set()) if step.agent or step.is_routed else set[str]()
            own = _step(
                plan.index, step, undoing[name], StepLinks(), None, inside_joins=False, known_secrets=secrets
            )
            found[undo] = dataclasses.replace(own, compensates=name)
    return found


def _compile_block(
    step: StepDefinition,
    block: Block,
    definition: WorkflowDefinition,
    compiler: TemplateCompiler,
    report: ValidationReport,
    known_secrets: Mapping[str, set[str]],
    path: Path,
) -> tuple[CompiledWorkflow, frozenset[str], ReadSites]:
    """The block, and what it reads of what is outside; `path` leads to what is inside it."""
    inside = report.within(path)
    repeated = step.repeat is not None
    compiler = compiler.for_block(block.steps, inside, repeated=repeated)
    content = WorkflowDefinition(
        name=definition.name,
        steps=block.steps,
        output=block.output,
        compensate_on=definition.compensate_on,
    )
    scope = _compile_scope(content, compiler, inside, known_secrets)
    reads, sites, round_ = scope.reads, scope.sites, None
    if step.repeat is not None:
        # The step itself has the condition.
        outer = TemplateCompiler.reporting(compiler, report)
        until, read = outer.condition(step.repeat.until, ("steps", step.name, "repeat", "until"))
        reads = reads.union(read)
        sites = {**{name: site._replace(path=site.path[len(path) :]) for name, site in read.items()}, **sites}
        if until is not None:
            round_ = CompiledRound(until, tuple(name for name in block.steps if previous(name) in reads))
    own = {f"steps.{name}" for name in block.steps}
    if repeated:
        own |= {ROUND_VARIABLE, *map(previous, block.steps)}
    output = FirstCompleted(block.steps).template if step.switch is not None else scope.output
    return (
        CompiledWorkflow(
            content, scope.steps, output, None, round_=round_, compensations=scope.compensations
        ),
        reads - own,
        {read: site._replace(path=(*path, *site.path)) for read, site in sites.items() if read not in own},
    )


class _CompiledExpressions(NamedTuple):
    """What a step's expressions have become."""

    when: Condition | None
    match: Condition | None
    form: InputSchema | None
    output_schema: InputSchema | None
    input: Template
    questions: Template | None
    cache_key: Template | None
    agent_expression: Template | None
    loop: CompiledForEach | None
    block: CompiledWorkflow | None
    sites: ReadSites
    # What it reads without the variables that it brings along; what has no site is read by default.
    reads: frozenset[str]


def _parts(
    step: StepDefinition,
    definition: WorkflowDefinition,
    compiler: TemplateCompiler,
    report: ValidationReport,
    known_secrets: Mapping[str, set[str]],
    inner: Path | None,
) -> _CompiledExpressions:
    """`inner` leads to what is inside the step, from its list of steps; None: as the step does."""
    path = step_path(step.name)
    items, item_sites = None, ReadSites()
    if step.for_each is not None:
        place = (*path, "for_each")
        items, item_sites = compiler.template(step.for_each.items, place)
        compiler = compiler.for_items()
    sites = ReadSites()
    when = None
    if step.when is not None:
        when, read = compiler.condition(step.when, (*path, "when"))
        sites = {**read, **sites}
        if when is not None and path[0] == "switch":
            when = when.behind(step.needs)
    template = RUN_INPUT if items is None else ITEM
    if step.input is not UNSET:
        template, read = compiler.template(step.input, (*path, "input"))
        sites = {**read, **sites}
    if step.action is not UNSET:
        template, read = compiler.template(step.action, (*path, step.kind))
        sites = {**read, **sites}
    agent_expression, called = None, frozenset[str]()
    if step.agent_expression is not None:
        agent_expression, read = compiler.template(step.agent_expression, (*path, "agent"))
        called = agent_expression.reads
        sites = {**read, **sites}
    block, outer = None, frozenset[str]()
    if step.block is not None:
        block, outer, read = _compile_block(
            step, step.block, definition, compiler, report, known_secrets, path if inner is None else inner
        )
        template = scope_template(outer)
        sites = {**read, **sites}
    match = None
    if step.wait_for is not None and step.wait_for.match is not None:
        match, read = compiler.for_event().condition(step.wait_for.match, (*path, "wait_for", "match"))
        sites = {**{name: site for name, site in read.items() if name not in EVENT_VARIABLES}, **sites}
    questions, cache_key, read = _questions_and_cache_key(step, compiler, path)
    sites = {**read, **sites}
    form = None if step.ask is None else compile_form(step.ask.form, (*path, "ask", "form"), report)
    loop = None
    if step.for_each is not None and items is not None:
        loop = CompiledForEach(
            items, step.for_each, when is not None and not when.reads.isdisjoint(FOR_EACH_VARIABLES)
        )
    output_schema = compile_output_schema(step.output_schema, (*path, "output_schema"), report)
    if items is not None:
        sites = {name: site for name, site in sites.items() if name not in FOR_EACH_VARIABLES}
    reads = template.reads | called
    if items is not None:
        reads -= {*FOR_EACH_VARIABLES}
    sites = {**sites, **item_sites}
    return _CompiledExpressions(
        when,
        match,
        form,
        output_schema,
        template,
        questions,
        cache_key,
        agent_expression,
        loop,
        block,
        sites,
        reads.union(sites),
    )


def _questions_and_cache_key(
    step: StepDefinition, compiler: TemplateCompiler, path: Path
) -> tuple[Template | None, Template | None, ReadSites]:
    questions, cache_key, sites = None, None, ReadSites()
    if step.questions is not None:
        questions, sites = compiler.template(step.questions.template, (*path, "questions"))
    if step.cache is not None:
        cache_key, read = compiler.template(step.cache.key, (*path, "cache", "key"))
        sites = {**read, **sites}
    return questions, cache_key, sites


def _secrets(step: StepDefinition) -> dict[str, str]:
    return {} if step.input is UNSET else secret_references(step.input)


def _step(
    index: int,
    definition: StepDefinition,
    parts: _CompiledExpressions,
    links: StepLinks,
    join: CompiledJoin | None,
    inside_joins: bool,
    known_secrets: set[str],
) -> CompiledStep:
    return CompiledStep(
        name=definition.name,
        index=index,
        definition=definition,
        agent=definition.agent,
        agent_expression=parts.agent_expression,
        kind=definition.kind,
        needs=links.needs,
        dependents=tuple(links.dependents),
        join=join,
        inside_join=inside_joins,
        for_each=parts.loop,
        block=parts.block,
        when=parts.when,
        match=parts.match,
        form=parts.form,
        output_schema=parts.output_schema,
        input=parts.input,
        questions=parts.questions,
        cache_key=parts.cache_key,
        catches=tuple(links.catches),
        secrets=_secrets(definition),
        told_secrets=tuple(sorted(known_secrets)),
    )
