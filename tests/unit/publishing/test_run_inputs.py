"""What of a message becomes the run input."""

from __future__ import annotations

import pytest

from trunkline.errors import Invalid
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import CallerMessage
from trunkline.publish_options import PublishOptions
from trunkline.publishing.run_inputs import MAX_DATA_PARTS, agent_input, workflow_input
from trunkline.workflow import StepDefinition, WorkflowDefinition, compile_workflow

CITY: JsonObject = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
NUMBERS: JsonObject = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def test_only_the_first_data_parts_are_tried() -> None:
    parts: list[JsonObject] = [{"data": number} for number in range(MAX_DATA_PARTS)]
    assert input_of(CITY, *parts[1:], {"data": {"city": "Rome"}}) == {"city": "Rome"}
    assert input_of(CITY, *parts, {"data": {"city": "Rome"}}, {"text": "Oslo"}) == {"city": "Oslo"}


def input_of(schema: JsonObject | None, *parts: JsonObject) -> Json:
    steps = {"s": StepDefinition(name="s", agent="A")}
    workflow = compile_workflow(WorkflowDefinition(name="w", input=schema, steps=steps))
    message = CallerMessage(message_id="m", context_id="c", parts=list(parts))
    return workflow_input(message, workflow, "correlation")


@pytest.mark.parametrize(
    ("schema", "parts", "expected"),
    [
        (None, [{"text": "a"}, {"text": "b"}], {"text": "a\nb"}),
        (None, [{"text": "a"}, {"data": [1]}], [1]),
        (None, [{"url": "https://a"}], {"text": ""}),
        (CITY, [{"text": "Rome"}], {"city": "Rome"}),
        (CITY, [{"text": "see data"}, {"data": {"n": 1}}, {"data": {"city": "Rome"}}], {"city": "Rome"}),
        (CITY, [{"text": "Rome"}, {"data": {"n": 1}}], {"city": "Rome"}),
        (NUMBERS, [{"data": {"n": 1}}], {"n": 1}),
        (NUMBERS, [{"data": {"n": "one"}}, {"text": "one"}], {"n": "one"}),
        ({"required": ["text"]}, [{"text": "a"}], {"text": "a"}),
    ],
)
def test_the_first_part_that_fits_the_schema_is_the_input(
    schema: JsonObject | None, parts: list[JsonObject], expected: Json
) -> None:
    assert input_of(schema, *parts) == expected


@pytest.mark.parametrize(
    ("parts", "metadata", "expected"),
    [
        ([{"text": "a"}, {"text": "b"}], None, {"text": "a\nb"}),
        ([{"data": [1]}], None, [1]),
        ([{"data": None}], None, None),
        ([{"text": "a"}, {"data": 1}], None, {"text": "a", "data": 1}),
        ([{"data": 1}, {"data": 2}], None, {"data": [1, 2]}),
        ([{"text": "a"}], {"tone": "dry"}, {"text": "a", "metadata": {"tone": "dry"}}),
        ([{"url": "https://a"}], None, {"parts": [{"url": "https://a"}]}),
        (
            [{"text": "a", "metadata": {"n": 1}}],
            None,
            {"text": "a", "parts": [{"text": "a", "metadata": {"n": 1}}]},
        ),
    ],
)
def test_nothing_of_a_message_to_an_agent_is_missing_in_its_input(
    parts: list[JsonObject], metadata: JsonObject | None, expected: Json
) -> None:
    message = CallerMessage(message_id="m", context_id="c", parts=parts, metadata=metadata)
    assert agent_input(message) == expected


def test_publish_can_say_what_a_message_becomes() -> None:
    steps = {"s": StepDefinition(name="s", agent="A")}
    options = PublishOptions(
        input={"city": "${ run.message.metadata.city }", "say": "${ run.message.text }!"}
    )
    workflow = compile_workflow(WorkflowDefinition(name="w", publish=options, steps=steps))
    message = CallerMessage(message_id="m", context_id="c", parts=[{"text": "hi"}], metadata={"city": "Rome"})
    assert workflow_input(message, workflow, "correlation") == {"city": "Rome", "say": "hi!"}
    with pytest.raises(Invalid) as caught:
        workflow_input(CallerMessage(message_id="m", context_id="c", parts=[]), workflow, "correlation")
    assert caught.value.findings[0].path == "publish.input"
