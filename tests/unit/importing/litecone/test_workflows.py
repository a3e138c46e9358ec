"""litecone's workflows in our language: the order of steps, and what they read."""

from __future__ import annotations

import pytest
from tests.unit.importing.sources import call, imported, loop_of, only_loss, remarks_of, steps_of, workflow

from trunkline.importing.litecone import import_files
from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.expressions.cel_compiler import CelCompiler


def test_steps_wait_for_the_one_that_names_them() -> None:
    steps = steps_of(
        workflow("step-1", {"step-1": call("step-2"), "step-2": call("step-3"), "step-3": call()})
    )
    assert [(name, step.get("needs")) for name, step in steps.items()] == [
        ("step_1", None), ("step_2", ["step_1"]), ("step_3", ["step_2"]),
    ]  # fmt: skip


def test_what_an_input_reads_is_read_alike() -> None:
    mapping: JsonObject = {
        "a": "${workflow.input.topic}",
        "b": "${first.output.findings}",
        "c": "${first.output.deep.list[0].in}",
        "d": "${first.output}",
        "e": "${first.output.text}",
        "f": "About ${workflow.input.topic}: ${first.output.x-y}",
        "g": "costs 5$${workflow.input.price}, or ${} or $${",
        "h": ["${workflow.input.a}", 1, None],
        "i": "${steps.first.output.findings}",
    }
    steps = steps_of(
        workflow("first", {"first": call("then"), "then": {"agent_name": "A", "input_mapping": mapping}})
    )
    assert steps["then"]["input"] == {
        "a": "${ input.topic }",
        "b": "${ steps.first.output.data.findings }",
        "c": "${ steps.first.output.data.deep.list[0]['in'] }",
        "d": "${ steps.first.output.data }",
        "e": "${ steps.first.output.text }",
        "f": "About ${ input.topic }: ${ steps.first.output.data['x-y'] }",
        "g": "costs 5${ '$' }${ input.price }, or $${} or $$${",
        "h": ["${ input.a }", 1, None],
        "i": "${ steps.first.output.data.findings }",
    }


def test_a_step_without_a_mapping_gets_an_empty_input_and_not_that_of_the_run() -> None:
    steps = steps_of(workflow("a", {"a": {"agent_name": "A", "next_step": None, "input_mapping": None}}))
    assert steps["a"] == {"agent": "A", "input": {}}


def test_agents_known_to_answer_in_parts_are_read_as_such() -> None:
    agent: JsonObject = {"name": "A", "url": "http://a", "protocol": "jsonrpc-2.0"}
    source = workflow(
        "a", {"a": call("b"), "b": call(None, x="${a.output}", y="${a.output.artifacts}", z="${a.output.n}")}
    )
    found = import_files([("w.json", source), ("agents.json", [agent])]).workflows[0].definition["steps"]
    assert isinstance(found, dict)
    assert isinstance(step := found["b"], dict)
    assert step["input"] == {
        "x": "${ steps.a.output }", "y": "${ steps.a.output.artifacts }", "z": "${ steps.a.output.data.n }",
    }  # fmt: skip


def test_parallel_steps_wait_for_nothing_of_one_another_and_the_next_for_all() -> None:
    block: JsonObject = {
        "type": "parallel",
        "parallel_steps": ["a", "b"],
        "max_parallelism": 1,
        "next_step": "end",
    }
    source = workflow(
        "p",
        {
            "p": block,
            "a": call("p"),
            "b": call("end"),
            "end": call(None, all="${p.output}", one="${p.output.a.x}"),
        },
    )
    (found,) = imported(source).workflows
    steps = steps_of(source)
    assert [steps[name].get("needs") for name in ("a", "b", "end")] == [None, None, ["a", "b"]]
    assert steps["end"]["input"] == {
        "all": {"a": "${ steps.a.output.data }", "b": "${ steps.b.output.data }"},
        "one": "${ steps.a.output.data.x }",
    }
    assert found.definition["max_parallel"] == 1
    assert found.complete


def test_both_sides_of_a_decision_run_on_it_and_what_follows_waits_for_both() -> None:
    decision: JsonObject = {
        "type": "conditional", "condition": {"expression": "${a.output.n} > 1"},
        "if_true_step": "yes", "if_false_step": "no", "next_step": "end",
    }  # fmt: skip
    source = workflow(
        "a",
        {
            "a": call("c"),
            "c": decision,
            "yes": call(),
            "no": call(),
            "end": call(None, r="${c.output.branch_output.x}"),
        },
    )
    steps = steps_of(source)
    condition = "has(steps.a.output.data.n) && steps.a.output.data.n > 1"
    assert steps["yes"] == {"agent": "A", "needs": ["a"], "when": condition, "input": {}}
    assert steps["no"] == {"agent": "A", "needs": ["a"], "when": f"!({condition})", "input": {}}
    assert (steps["end"]["needs"], "when" in steps["end"]) == (["yes", "no"], False)
    assert steps["end"]["input"] == {
        "r": f"${{ (({condition}) ? steps.yes.output.data.x : steps.no.output.data.x) }}"
    }


def test_a_condition_on_what_another_decision_led_to_reads_that_side_only() -> None:
    def decision(expression: str, **more: Json) -> JsonObject:
        return {"type": "conditional", "condition": {"expression": expression}, **more}

    first = decision("${workflow.input.x}", if_true_step="yes", if_false_step="no", next_step="d")
    second = decision("${c.output.branch_output.n} > 1", if_true_step="end")
    source = workflow("c", {"c": first, "yes": call(), "no": call(), "d": second, "end": call()})
    when = steps_of(source)["end"]["when"]
    assert isinstance(when, str)
    compiled = CelCompiler(("yes", "no")).compile_condition(when)
    outputs: list[tuple[JsonObject, bool]] = [({"n": 2}, True), ({"n": 1}, False), ({}, False)]
    for taken, other in (("yes", "no"), ("no", "yes")):
        for output, holds in outputs:
            scope: JsonObject = {
                "input": {"x": taken == "yes"},
                f"steps.{taken}": {"output": {"data": output}},
                f"steps.{other}": {"output": None},
            }
            assert compiled.evaluate(scope.__getitem__) is holds


def test_a_decision_with_one_side_lets_the_rest_go_on_without_it() -> None:
    decision: JsonObject = {
        "type": "conditional", "condition": {"expression": "${workflow.input.x}"},
        "if_true_step": "yes", "next_step": "end",
    }  # fmt: skip
    steps = steps_of(workflow("c", {"c": decision, "yes": call(), "end": call()}))
    assert steps["end"] == {"agent": "A", "needs": ["yes"], "input": {}}


def test_branches_that_meet_again_in_a_step_run_it_once() -> None:
    decision: JsonObject = {
        "type": "conditional", "condition": {"expression": "${workflow.input.x}"},
        "if_true_step": "a", "if_false_step": "b",
    }  # fmt: skip
    steps = steps_of(
        workflow(
            "c", {"c": decision, "a": call("end"), "b": call("end"), "end": call("last"), "last": call()}
        )
    )
    assert steps["end"] == {"agent": "A", "needs": ["a", "b"], "input": {}}
    assert steps["last"] == {"agent": "A", "needs": ["end"], "input": {}}


def test_a_step_deep_in_decisions_goes_by_the_step_before_it() -> None:
    def decision(yes: str, no: str | None) -> JsonObject:
        condition: JsonObject = {"expression": "${workflow.input.x} == 1"}
        return {"type": "conditional", "condition": condition, "if_true_step": yes, "if_false_step": no}

    source = workflow(
        "c", {"c": decision("a", "b"), "a": call("d"), "d": decision("e", None), "b": call(), "e": call()}
    )
    steps = steps_of(source)
    assert steps["e"]["when"] == "steps.a.status == 'COMPLETED' && (has(input.x) && input.x in [1, true])"
    assert [remark.path for remark in remarks_of(source, "note") if "as defined" in remark.message] == [
        "steps.a.next_step"
    ]


@pytest.mark.parametrize(
    ("policy", "join"),
    [
        ({"join_policy": "all"}, None),
        ({}, None),
        ({"join_policy": "any"}, {"policy": "any", "cancel_rest": False}),
        ({"join_policy": "majority"}, {"policy": "majority", "cancel_rest": False}),
        ({"join_policy": "n_of_m", "n_required": 2}, {"at_least": 2, "cancel_rest": False}),
    ],
)
def test_a_fork_joins_as_its_policy_says(policy: JsonObject, join: Json) -> None:
    branches: JsonObject = {
        "one": {"steps": ["a"], "timeout_seconds": 5},
        "two": {"steps": ["b"]},
        "three": {"steps": ["c"]},
    }
    config: JsonObject = {"branches": branches, "branch_timeout_seconds": 9, **policy}
    fork: JsonObject = {"type": "fork_join", "fork_join_config": config, "next_step": "end"}
    source = workflow(
        "f", {"f": fork, "a": call(), "b": call(), "c": call(), "end": call(None, r="${f.output.one.x}")}
    )
    steps = steps_of(source)
    assert (steps["end"]["needs"], steps["end"].get("join")) == (["a", "b", "c"], join)
    assert [steps[name]["deadline"] for name in "abc"] == ["5s", "9s", "9s"]
    read = "steps.a.output.data.x"
    may_be_late = f"(steps.a.output == null ? null : {read})"
    assert steps["end"]["input"] == {"r": f"${{ {read if join is None else may_be_late} }}"}
    assert imported(source).lost == 0


def fork_of(policy: str, **steps: JsonObject) -> JsonObject:
    branches: JsonObject = {"x": {"steps": ["a", "b"]}, "y": {"steps": ["c"]}}
    config: JsonObject = {"branches": branches, "join_policy": policy}
    fork: JsonObject = {"type": "fork_join", "fork_join_config": config, "next_step": "next"}
    return workflow("f", {"f": fork, "a": call(), "b": call(None, n="${a.output.n}"), "c": call(), **steps})


def test_a_step_in_a_branch_reads_the_one_before_it_which_is_over() -> None:
    assert steps_of(fork_of("any", next=call()))["b"]["input"] == {"n": "${ steps.a.output.data.n }"}


def test_a_condition_on_a_branch_that_may_be_late_is_false_while_it_is() -> None:
    decision: JsonObject = {
        "type": "conditional", "condition": {"expression": "${c.output.n} > 1"}, "if_true_step": "yes",
    }  # fmt: skip
    steps = steps_of(fork_of("any", next=decision, yes=call()))
    there = "steps.c.output != null && has(steps.c.output.data.n)"
    assert steps["yes"]["when"] == f"{there} && steps.c.output.data.n > 1"
    steps = steps_of(fork_of("all", next=decision, yes=call()))
    assert steps["yes"]["when"] == "has(steps.c.output.data.n) && steps.c.output.data.n > 1"


def test_a_text_with_a_branch_that_may_be_late_has_null_in_its_place() -> None:
    steps = steps_of(fork_of("any", next=call(None, t="It is ${c.output.text}.")))
    assert steps["next"]["input"] == {
        "t": "It is ${ (steps.c.output == null ? null : steps.c.output.text) }."
    }


def test_a_branch_that_others_read_than_the_join_may_fail_and_ends_there() -> None:
    steps = steps_of(fork_of("any", next=call("end"), end=call(None, n="${a.output.n}")))
    assert steps["a"] == {"agent": "A", "input": {}, "on_error": "continue"}
    assert (steps["b"]["when"], steps["b"]["on_error"]) == ("steps.a.status == 'COMPLETED'", "continue")
    assert "on_error" not in steps["c"]


def test_a_loop_over_the_list_of_a_branch_that_may_be_late_is_reported() -> None:
    loop: JsonObject = {
        "type": "loop",
        "loop_config": {"collection": "${c.output.items}", "loop_body": ["body"]},
    }
    source = fork_of("any", next=loop, body=call())
    loss = only_loss(source)
    assert (loss.path, "may still be running" in loss.message) == ("steps.next.loop_config.collection", True)
    each = steps_of(source)["next"]["for_each"]
    assert isinstance(each, dict)
    assert each["items"] == "${ (steps.c.output == null ? [] : steps.c.output.data.items) }"
    assert imported(fork_of("all", next=loop, body=call())).lost == 0


def test_a_workflow_of_a_loop_is_given_null_for_a_branch_that_may_be_late() -> None:
    loop: JsonObject = {
        "type": "loop",
        "loop_config": {"collection": "${workflow.input.items}", "loop_body": ["one", "two"]},
    }
    source = fork_of("any", next=loop, one=call(), two=call(None, n="${c.output.n}"))
    child, parent = children_of(source)
    assert isinstance(child["steps"], dict)
    assert child["steps"]["two"] == {
        "agent": "A",
        "needs": ["one"],
        "input": {"n": "${ (input.steps.c == null ? null : input.steps.c.data.n) }"},
    }
    assert isinstance(parent["steps"], dict)
    assert isinstance(began := parent["steps"]["next"], dict)
    assert began["input"] == {"steps": {"c": "${ steps.c.output }"}}


def test_a_loop_becomes_a_step_for_each_item() -> None:
    steps = steps_of(loop_of(execution_mode="parallel", max_parallelism=3))
    assert steps["l"] == {
        "agent": "B",
        "for_each": {"items": "${ input.items }", "mode": "parallel", "limit": 3},
        "input": {
            "i": "${ item.name }", "n": "${ index }", "t": "${ size(input.items) }",
            "l": "${ (index + 1 == size(input.items)) }",
        },
    }  # fmt: skip
    assert steps["end"]["input"] == {"r": "${ steps.l.output.map(o, o.data) }"}


def test_a_loop_goes_one_by_one_if_nothing_is_said() -> None:
    assert steps_of(loop_of())["l"]["for_each"] == {"items": "${ input.items }", "mode": "sequential"}


@pytest.mark.parametrize(
    ("config", "on_error", "reading"),
    [
        ({"on_error": "stop"}, None, "steps.l.output.map(o, o.data)"),
        ({"on_error": "continue"}, "continue", "steps.l.output.map(o, o == null ? null : o.data)"),
        ({"on_error": "collect"}, "collect", "steps.l.output.map(o, o.status == 'COMPLETED' ? o.output.data : null)"),
        ({"error_policy": "continue"}, "continue", "steps.l.output.map(o, o == null ? null : o.data)"),
        (
            {"on_error": "continue", "max_iterations": 2},
            "collect",
            "steps.l.output.filter(o, o.status != 'SKIPPED').map(o, o.status == 'COMPLETED' ? o.output.data : null)",
        ),
        ({"max_iterations": 2}, None, "steps.l.output.filter(o, o != null).map(o, o.data)"),
    ],
)  # fmt: skip
def test_a_loop_treats_failures_as_there(config: JsonObject, on_error: str | None, reading: str) -> None:
    steps = steps_of(loop_of(**config))
    each = steps["l"]["for_each"]
    assert isinstance(each, dict)
    assert each.get("on_error") == on_error
    assert steps["end"]["input"] == {"r": f"${{ {reading} }}"}
    assert steps["l"].get("when") == ("index < 2" if "max_iterations" in config else None)


def children_of(source: Json) -> list[JsonObject]:
    found = imported(source)
    assert found.lost == 0, found.remarks
    return [workflow.definition for workflow in found.workflows]


def test_a_loop_over_several_steps_begins_a_workflow_for_each_item() -> None:
    loop: JsonObject = {"collection": "${a.output.items}", "loop_body": ["b", "c"]}
    steps: dict[str, JsonObject] = {
        "a": call("l"),
        "l": {"type": "loop", "loop_config": loop, "next_step": "end"},
        "b": call("x", item="${loop.item}", last="${loop.is_last}", who="${workflow.input.who}"),
        "c": call(None, b="${b.output.x}", a="${a.output.y}"),
        "end": call(None, r="${l.output.iterations}", n="${l.output.total_count}"),
    }
    child, parent = children_of(workflow("a", steps))
    assert child == {
        "name": "w.l",
        "steps": {
            "b": {
                "agent": "A",
                "input": {"item": "${ input.item }", "last": "${ input.is_last }", "who": "${ input.input.who }"},
            },
            "c": {
                "agent": "A",
                "needs": ["b"],
                "input": {"b": "${ steps.b.output.data.x }", "a": "${ input.steps.a.data.y }"},
            },
        },
        "output": {"result": "${ steps.c.output }"},
    }  # fmt: skip
    assert isinstance(parent["steps"], dict)
    assert parent["steps"]["l"] == {
        "workflow": "w.l",
        "for_each": {"items": "${ steps.a.output.data.items }", "mode": "sequential"},
        "needs": ["a"],
        "input": {
            "item": "${ item }",
            "is_last": "${ (index + 1 == size(steps.a.output.data.items)) }",
            "input": "${ input }",
            "steps": {"a": "${ steps.a.output }"},
        },
    }
    end = parent["steps"]["end"]
    assert isinstance(end, dict)
    assert end["input"] == {
        "r": "${ steps.l.output.map(o, o.result.data) }", "n": "${ size(steps.l.output) }",
    }  # fmt: skip


def test_a_loop_over_a_decision_gives_what_the_decision_gives() -> None:
    decision: JsonObject = {
        "type": "conditional", "condition": {"expression": "${loop.item.ok} == true"},
        "if_true_step": "yes", "if_false_step": "no",
    }  # fmt: skip
    loop: JsonObject = {"collection": "${workflow.input.items}", "loop_body": ["d"]}
    steps: dict[str, JsonObject] = {
        "l": {"type": "loop", "loop_config": loop, "next_step": "end"},
        "d": decision, "yes": call(), "no": call(), "end": call(None, r="${l.output.iterations}"),
    }  # fmt: skip
    child, parent = children_of(workflow("l", steps))
    condition = "has(input.item.ok) && input.item.ok == true"
    assert isinstance(child["output"], dict)
    assert isinstance(result := child["output"]["result"], dict)
    assert result["branch_output"] == f"${{ (({condition}) ? steps.yes.output.data : steps.no.output.data) }}"
    assert isinstance(parent["steps"], dict)
    assert parent["steps"]["end"] == {
        "agent": "A", "needs": ["l"], "input": {"r": "${ steps.l.output.map(o, o.result) }"},
    }  # fmt: skip


def test_a_branch_of_several_steps_with_a_time_begins_a_workflow_with_that_deadline() -> None:
    branches: JsonObject = {"x": {"steps": ["a", "b"], "timeout_seconds": 60}, "y": {"steps": ["c", "d"]}}
    fork: JsonObject = {
        "type": "fork_join", "fork_join_config": {"branches": branches, "join_policy": "any"}, "next_step": "end",
    }  # fmt: skip
    end = call(None, all="${f.output}", b="${b.output.n}", a="${a.output.n}", d="${d.output.n}")
    steps: dict[str, JsonObject] = {
        "f": fork, "a": call(), "b": call(None, a="${a.output.m}"), "c": call(), "d": call(), "end": end,
    }  # fmt: skip
    child, parent = children_of(workflow("f", steps))
    assert child["output"] == {"result": "${ steps.b.output }", "of_a": "${ steps.a.output }"}
    assert isinstance(parent["steps"], dict)
    assert parent["steps"]["f_x"] == {"workflow": "w.f.x", "input": {}, "deadline": "60s"}
    assert parent["steps"]["d"] == {"agent": "A", "needs": ["c"], "input": {}}
    assert parent["steps"]["end"] == {
        "agent": "A",
        "needs": ["f_x", "d"],
        "join": {"policy": "any", "cancel_rest": False},
        "input": {
            "all": {
                "x": "${ (steps.f_x.output == null ? null : steps.f_x.output.result.data) }",
                "y": "${ (steps.d.output == null ? null : steps.d.output.data) }",
            },
            "b": "${ (steps.f_x.output == null ? null : steps.f_x.output.result.data.n) }",
            "a": "${ (steps.f_x.output == null ? null : steps.f_x.output.of_a.data.n) }",
            "d": "${ (steps.d.output == null ? null : steps.d.output.data.n) }",
        },
    }


def test_loops_in_loops_pass_on_what_the_inner_one_reads() -> None:
    outer: JsonObject = {"collection": "${workflow.input.rows}", "loop_body": ["before", "inner"]}
    inner: JsonObject = {"collection": "${before.output.cells}", "loop_body": ["one", "two"]}
    steps: dict[str, JsonObject] = {
        "outer": {"type": "loop", "loop_config": outer},
        "before": call(None, row="${loop.item}"),
        "inner": {"type": "loop", "loop_config": inner},
        "one": call(None, cell="${loop.item}", who="${workflow.input.who}"),
        "two": call(None, before="${before.output.n}"),
    }
    innermost, middle, _ = children_of(workflow("outer", steps))
    assert isinstance(innermost["steps"], dict)
    assert innermost["steps"]["two"] == {
        "agent": "A", "needs": ["one"], "input": {"before": "${ input.steps.before.data.n }"},
    }  # fmt: skip
    assert isinstance(middle["steps"], dict)
    assert middle["steps"]["inner"] == {
        "workflow": "w.inner",
        "for_each": {"items": "${ steps.before.output.data.cells }", "mode": "sequential"},
        "needs": ["before"],
        "input": {
            "item": "${ item }",
            "input": "${ input.input }",
            "steps": {"before": "${ steps.before.output }"},
        },
    }


def test_a_loop_over_itself_ends() -> None:
    loop: JsonObject = {"collection": "${workflow.input.x}", "loop_body": ["l", "a"]}
    source = workflow("l", {"l": {"type": "loop", "loop_config": loop}, "a": call()})
    assert any("contains itself" in remark.message for remark in remarks_of(source, "lost"))


def test_ids_of_the_api_and_versions_are_noted_as_without_meaning() -> None:
    source = workflow("a", {"a": call()}, workflow_id="w-1", version="1.0")
    assert remarks_of(source, "lost") == []
    (note,) = remarks_of(source, "note")
    assert note.message.startswith("'workflow_id', 'version' are left out")


def test_what_the_api_answers_is_taken_as_it_is() -> None:
    page: JsonObject = {
        "items": [
            {
                "id": "1",
                "name": "w",
                "version": 3,
                "status": "active",
                "workflow_data": workflow("a", {"a": call()}),
            }
        ],
        "pagination": {"total": 1},
    }
    (found,) = imported(page).workflows
    assert (found.name, found.complete) == ("w", True)
