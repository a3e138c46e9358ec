"""What an import of litecone workflows cannot convert is reported, and no file can do harm."""

from __future__ import annotations

import pytest
from tests.unit.importing.sources import call, imported, loop_of, only_loss, remarks_of, steps_of, workflow

from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow import load_workflow


def fork_at_the_end() -> JsonObject:
    config: JsonObject = {"branches": {"x": {"steps": ["a"]}, "y": {"steps": ["b"]}}, "join_policy": "any"}
    return workflow("f", {"f": {"type": "fork_join", "fork_join_config": config}, "a": call(), "b": call()})


def parallel_of(*members: str, **steps: JsonObject) -> JsonObject:
    return workflow("p", {"p": {"type": "parallel", "parallel_steps": list(members)}, **steps})


@pytest.mark.parametrize(
    ("source", "path", "message"),
    [
        (workflow("a", {"a": call("b")}), "steps.a.next_step", "the step 'b' does not exist"),
        (workflow("a", {"a": call("b"), "b": call("a")}), "steps.a", "the steps form a cycle: a -> b -> a"),
        (workflow("a", {"a": call("a")}), "steps.a", "the steps form a cycle: a -> a"),
        (workflow("x", {"a": call()}), "start_step", "the first step 'x' is not among the steps"),
        ({"start_step": "a", "steps": {"a": call()}}, "name", "the workflow has no name"),
        (workflow("a", {"a": call(), "b": {"type": "wait_for_event"}}), "steps.b.type", "'wait_for_event'"),
        (workflow("a", {"a": {"type": "wait", "event": "x", "input_mapping": {}}}), "steps.a.type",
         "steps of type 'wait' have no counterpart here; left out with it: 'event', 'input_mapping'"),
        (workflow("a", {"a": {"type": "parallel"}}), "steps.a", "the step has no 'parallel_steps'"),
        (workflow("a", {"a": {**call(), "retries": 3}}), "steps.a.retries", "the field 'retries' is not known"),
        (workflow("a", {"a": call()}, owner="me"), "owner", "the field 'owner' is not known"),
        (workflow("a", {"a": call(None, x="${b.output.y}")}), "steps.a.input_mapping.x", "nothing to read"),
        (workflow("a", {"a": call(None, x="${loop.item}")}), "steps.a.input_mapping.x", "outside of a loop"),
        (workflow("a", {"a": call("b", x="${b.output.y}"), "b": call()}), "steps.a.input_mapping.x", "'b' runs later"),
        (workflow("a", {"a": call("b"), "b": call(None, x="${a.status}")}), "steps.b.input_mapping.x", "no status"),
        (
            workflow("a", {"a": call("b"), "b": call(None, x="${a.output[*]}")}),
            "steps.b.input_mapping.x",
            "not a supported path",
        ),
        (workflow("a", {"a": call(None, x={"$secret": "k"})}), "steps.a.input_mapping.x", "would refer to a secret"),
        (workflow("a", {"a": {**call(), "input_mapping": [1]}}), "steps.a.input_mapping", "must be an object"),
        (fork_at_the_end(), "steps.f.fork_join_config.join_policy", "no following step can wait for 'any'"),
        (parallel_of("a", "b", a=call("b"), b=call()), "steps.b", "reach the step on several paths"),
        (parallel_of("a", "x", a=call()), "steps.p.parallel_steps", "the step 'x' does not exist"),
        (loop_of(loop_body=["x"]), "steps.l", "cannot be ordered"),
        (loop_of(collection="items"), "steps.l", "'collection' is not a single ${…}"),
        (loop_of(on_error="ignore"), "steps.l.loop_config.on_error", "must be one of stop, continue, collect"),
        (loop_of(max_iterations=0), "steps.l.loop_config.max_iterations", "a whole number from 1 on, and it is 0"),
        (7, "", "neither a workflow nor an agent"),
        ({"some": "thing"}, "", "neither a workflow nor an agent"),
        ([workflow("a", {"a": call()}), 3], "[1]", "neither a workflow nor an agent"),
        ([workflow("a", {"a": call()})] * 2, "", "there are several workflows with the name 'w'"),
    ],
)  # fmt: skip
def test_what_is_not_converted_is_reported_with_its_position_and_an_alternative(
    source: Json, path: str, message: str
) -> None:
    loss = only_loss(source)
    assert (loss.path, message in loss.message) == (path, True), loss


def test_a_condition_that_is_not_understood_lets_the_run_fail_there_and_not_go_on() -> None:
    decision: JsonObject = {
        "type": "conditional",
        "condition": {"expression": "1 + 1"},
        "if_true_step": "a",
        "if_false_step": "b",
    }
    source = workflow("c", {"c": decision, "a": call(), "b": call()})
    assert only_loss(source).path == "steps.c.condition.expression"
    steps = steps_of(source)
    assert steps["a"]["when"] == "{}['not carried over: the condition of c']"
    assert steps["b"]["when"] == "!({}['not carried over: the condition of c'])"
    assert not imported(source).workflows[0].complete


def test_data_that_would_name_one_of_our_secrets_does_not_become_its_name() -> None:
    source = workflow("a", {"a": call(None, x={"$secret": "k"}, y=[{"$secret": "k"}])})
    given = steps_of(source)["a"]["input"]
    assert isinstance(given, dict)
    assert all(isinstance(value, str) and value.startswith("${ {}[") for value in given.values())


def test_ten_thousand_steps_in_a_row_are_taken() -> None:
    steps = {
        f"step-{n}": call(f"step-{n + 1}" if n < 9_999 else None, x="${workflow.input.x}")
        for n in range(10_000)
    }
    found = imported(workflow("step-0", steps))
    assert found.lost == 0
    assert len(found.remarks) == 1


def test_thousands_of_steps_that_all_wait_for_thousands_are_refused_and_not_written() -> None:
    names = [f"s{n}" for n in range(2_000)]
    first: JsonObject = {"type": "parallel", "parallel_steps": [*names[:1_000]], "next_step": "q"}
    second: JsonObject = {"type": "parallel", "parallel_steps": [*names[1_000:]]}
    source = workflow("p", {"p": first, "q": second, **{name: call() for name in names}})
    assert "more than 100,000 dependencies" in only_loss(source).message


def test_decisions_nested_thousands_deep_are_reported_and_do_no_harm() -> None:
    def decision(n: int) -> JsonObject:
        condition: JsonObject = {"expression": f"${{workflow.input.x}} > {n}"}
        return {
            "type": "conditional",
            "condition": condition,
            "if_true_step": f"c{n + 1}",
            "if_false_step": f"e{n}",
        }

    steps: dict[str, JsonObject] = {f"c{n}": decision(n) for n in range(1_000)} | {
        f"e{n}": call() for n in range(1_000)
    }
    found = imported(workflow("c0", {**steps, "c1000": call()}))
    assert found.lost > 900
    assert len(found.remarks) <= 400
    assert found.dropped


def test_a_reference_to_blocks_in_blocks_does_not_grow_without_end() -> None:
    blocks: dict[str, JsonObject] = {
        f"p{n}": {"type": "parallel", "parallel_steps": [f"p{n + 1}", f"p{n + 1}x"]} for n in range(40)
    }
    blocks |= {
        f"p{n}x": {"type": "parallel", "parallel_steps": [f"p{n + 1}", f"p{n + 1}x"]} for n in range(40)
    }
    loss = remarks_of(
        workflow("a", {"a": call(None, x="${p0.output.p1}"), **blocks, "p40": call(), "p40x": call()}), "lost"
    )
    assert len(loss) == 1


def test_every_import_without_losses_is_valid_in_our_language() -> None:
    (found,) = imported(loop_of()).workflows
    assert load_workflow(str(found.definition).replace("None", "null"), source="x").definition.name == "w"
