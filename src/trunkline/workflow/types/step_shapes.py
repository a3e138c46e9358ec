"""
What the steps of a workflow put out, as far as the definition says it: the scope in which expressions are checked.

A step of an agent has the shape of its `output_schema`, a `set` that of what it sets, a block and a child workflow that
of their outputs. Outputs that a person can give instead (`runs resolve`) have no known shape.
"""

from __future__ import annotations

from collections.abc import Callable

from trunkline.jsontypes import JsonObject
from trunkline.workflow.compile import CompiledStep, CompiledWorkflow
from trunkline.workflow.definition import WorkflowReference
from trunkline.workflow.expressions.plain_paths import FAILURE_VARIABLE, PREVIOUS, ROUND_VARIABLE, PlainPath
from trunkline.workflow.expressions.template import (
    FirstCompleted,
    ListParts,
    ObjectParts,
    Template,
    content_of,
)
from trunkline.workflow.output_schema import saved_schema
from trunkline.workflow.types.shapes import (
    ANY,
    NUMBER,
    TEXT,
    ListShape,
    ObjectShape,
    ScalarShape,
    SchemaShape,
    Shape,
    ShapeReader,
    union,
)

ChildOf = Callable[[WorkflowReference], CompiledWorkflow | None]

# Of steps that read steps that read steps. Those read first are known before.
_MAX_DEPTH = 40
_STEPS = "steps."
_EVENT = ObjectShape({"type": TEXT, "key": ANY, "data": ANY, "id": TEXT, "at": TEXT})
_FAILURE = ObjectShape({"code": TEXT, "message": TEXT, "step": ANY})
_RUN = ObjectShape({"id": TEXT, "correlation_id": TEXT, "message": ANY})


class TypeScope:
    """What the steps of a workflow, or of a block, can read."""

    def __init__(
        self,
        workflow: CompiledWorkflow,
        reader: ShapeReader,
        child_of: ChildOf,
        *,
        outer: TypeScope | None = None,
        item: Shape | None = None,
        depth: int = 0,
    ) -> None:
        """`item`: of the loop around the block. `depth`: how many workflows lead to this one."""
        self._workflow = workflow
        self._reader = reader
        self._child_of = child_of
        self._outer = outer
        self._item = item
        self._depth = depth
        self._outputs: dict[str, Shape] = {}
        self._blocks: dict[str, TypeScope] = {}
        # Steps whose outputs are being found out.
        self._asked: list[str] = []

    def variable(self, name: str, item: Shape | None = None) -> Shape:
        """`item`: of the step that reads, if it has items."""
        step = name.removeprefix(_STEPS)
        if step != name and step in self._workflow.steps:
            return ObjectShape({"status": TEXT, "output": self.output(step), "error": ANY})
        if name.startswith(PREVIOUS):
            # In the first round, there is none.
            return ANY
        if name in {"index", ROUND_VARIABLE}:
            return NUMBER
        if name == FAILURE_VARIABLE:
            return _FAILURE
        if name == "item" and (item is not None or self._item is not None):
            return item or self._item or ANY
        if self._outer is not None:
            return self._outer.variable(name)
        if name == "run":
            return _RUN
        schema = self._workflow.definition.input
        return SchemaShape(schema, schema) if name == "input" and schema else ANY

    def follow(self, path: PlainPath, item: Shape | None = None) -> Shape:
        shape = self.variable(path.root, item)
        for key in path.keys:
            shape = self._reader.member(shape, key).shape
        return shape

    def items_of(self, plan: CompiledStep) -> Shape | None:
        """What one item of the step is; None: it has none."""
        if plan.for_each is None:
            return None
        found = self.template(plan.for_each.items)
        return found.element if isinstance(found, ListShape) else self._reader.member(found, 0).shape

    def output(self, step: str) -> Shape:
        found = self._outputs.get(step)
        if found is not None:
            return found
        if step in self._asked or len(self._asked) >= _MAX_DEPTH or self._depth >= _MAX_DEPTH:
            return ANY
        self._asked.append(step)
        try:
            plan = self._workflow.steps[step]
            shape = self._one_output(plan)
            if plan.for_each is not None:
                shape = ANY if plan.for_each.definition.on_error == "collect" else ListShape(shape)
        finally:
            self._asked.pop()
        self._outputs[step] = shape
        return shape

    def _one_output(self, plan: CompiledStep) -> Shape:
        definition = plan.definition
        match plan.kind:
            case "agent":
                schema = definition.output_schema
                if not schema or saved_schema(schema) is not None or definition.delivery == "at_most_once":
                    return ANY
                return _agent_output(schema)
            case "set":
                return self.template(plan.input, self.items_of(plan))
            case "workflow":
                child = self._child_of((definition.workflow or "", definition.version))
                if child is None:
                    return ANY
                return TypeScope(child, self._reader, self._child_of, depth=self._depth + 1).result()
            case "steps":
                return self.block(plan).result()
            case "wait_for":
                taken = 1 if definition.wait_for is None else definition.wait_for.count
                return _EVENT if taken == 1 else ListShape(_EVENT)
            case "ask":
                return _answer(plan)
            case "sleep":
                return ANY

    def block(self, plan: CompiledStep) -> TypeScope:
        """The scope of the steps inside a step."""
        found = self._blocks.get(plan.name)
        if found is None:
            assert plan.block is not None, "only a step with steps has a scope"  # noqa: S101 - an invariant
            found = self._blocks[plan.name] = TypeScope(
                plan.block,
                self._reader,
                self._child_of,
                outer=self,
                item=self.items_of(plan) or self._item,
                depth=self._depth + 1,
            )
        return found

    def undoing(self, plan: CompiledStep) -> TypeScope:
        """The scope of a compensation: that of an item of a loop reads the item's own output."""
        step = self._workflow.steps[plan.compensates or ""]
        if step.for_each is None:
            return self
        scope = TypeScope(
            self._workflow,
            self._reader,
            self._child_of,
            outer=self._outer,
            item=self.items_of(step),
            depth=self._depth,
        )
        scope._outputs[step.name] = self._one_output(step)
        return scope

    def result(self) -> Shape:
        """What the workflow, or the block, puts out."""
        steps = self._workflow.steps
        output = self._workflow.output
        if output is not None:
            if isinstance(output.part, FirstCompleted):
                return union(self.output(step) for step in steps)
            return self.template(output)
        last = {name: self.output(name) for name, plan in steps.items() if not plan.dependents}
        return next(iter(last.values())) if len(last) == 1 else ObjectShape(last)

    def template(self, template: Template, item: Shape | None = None) -> Shape:
        return self._part(template.part, item)

    def _part(self, part: object, item: Shape | None) -> Shape:
        match content_of(part):
            case PlainPath() as path:
                return self.follow(path, item)
            case ObjectParts(fields):
                return ObjectShape({name: self._part(each, item) for name, each in fields})
            case ListParts(elements):
                return ListShape(union(self._part(each, item) for each in elements))
            case str():
                return TEXT
            case bool():
                return ScalarShape("true or false")
            case int() | float():
                return NUMBER
            case None:
                return ANY


def _agent_output(schema: JsonObject) -> Shape:
    """
    The output around the data that were checked (`protocols/outputs.py`).

    With `output_mode: data` the data themselves are the output, so it may have any other key. If the data have a key
    `data` of their own, nothing is known of it.
    """
    properties = schema.get("properties")
    has_data = isinstance(properties, dict) and "data" in properties
    envelope: JsonObject = {"properties": {"data": True if has_data else schema}, "required": ["data"]}
    return SchemaShape({**envelope, "additionalProperties": True}, schema)


def _answer(plan: CompiledStep) -> Shape:
    ask = plan.definition.ask
    form = None if ask is None else ask.form
    data = SchemaShape(form, form) if form else ANY
    fields: dict[str, Shape] = {"answer": ANY, "data": data, "by": ANY, "at": TEXT, "comment": ANY}
    if ask is not None and ask.required > 1:
        fields["answers"] = ANY
    return ObjectShape(fields)
