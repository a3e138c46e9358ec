"""
Workflows in litecone's format, made after what its documentation shows, and the agents that they call.

Every agent speaks Simple A2A and is at an address of its own; `ANSWERS` says what each makes of its input.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent


class AgentRefused(Exception):
    """The agent answers that it has failed."""


Answers = dict[str, Callable[[JsonObject], Json | Awaitable[Json]]]


def step(agent: str, following: str | None = None, **mapping: str) -> JsonObject:
    return {"type": "agent", "agent_name": agent, "next_step": following, "input_mapping": {**mapping}}


def workflow(name: str, start: str, **steps: JsonObject) -> JsonObject:
    """Keyword arguments are ids with `_` for `-`, as litecone's ids have it."""
    described: JsonObject = {}
    for key, content in steps.items():
        name_of = key.replace("_", "-")
        described[name_of] = {"id": name_of, **content}
    return {
        "workflow_id": f"wf-{name}",
        "name": name,
        "version": "1.0",
        "start_step": start,
        "steps": described,
    }


IN_A_ROW = workflow(
    "brew-and-taste",
    "step-1",
    step_1=step(
        "Brewer", "step-2", leaves="${workflow.input.leaves}", grams="${workflow.input.amount.grams}"
    ),
    step_2=step("Taster", None, cup="${step-1.output.cup}", note="A cup of ${step-1.output.cup}, please"),
)

IN_PARALLEL = workflow(
    "three-prices",
    "block",
    block={
        "type": "parallel", "parallel_steps": ["shop-a", "shop-b", "shop-c"], "max_parallelism": 2, "next_step": "sum",
    },
    shop_a=step("Price", None, of="${workflow.input.ware}", factor="1"),
    shop_b=step("Price", None, of="${workflow.input.ware}", factor="2"),
    shop_c=step("Price", "block", of="${workflow.input.ware}", factor="3"),
    sum=step("Echo", None, a="${shop-a.output.price}", all="${block.output}", c="${block.output.shop-c.price}"),
)  # fmt: skip


def decision(expression: str, yes: str | None, no: str | None, following: str | None) -> JsonObject:
    return {
        "type": "conditional", "condition": {"expression": expression},
        "if_true_step": yes, "if_false_step": no, "next_step": following,
    }  # fmt: skip


DECIDED = workflow(
    "good-or-bad",
    "judge",
    judge=step("Judge", "check", text="${workflow.input.text}"),
    check=decision(
        "${judge.output.score} > 0.5 and ${judge.output.words} contains 'tea'", "good", "bad", "end"
    ),
    good=step("Echo", None, verdict="good", score="${judge.output.score}"),
    bad=step("Echo", None, verdict="bad"),
    end=step(
        "Echo",
        None,
        was="${check.output.branch_taken}",
        by="${check.output.branch_step_id}",
        said="${check.output.branch_output}",
    ),
)

# Decisions in decisions that come to the same steps on several ways, and a parallel block in one of them.
BRANCHED = workflow(
    "application",
    "intake",
    intake=step("Echo", "complete", kind="${workflow.input.kind}", again="${workflow.input.again}"),
    complete=decision("${intake.output.kind} != 'incomplete'", "assess", "ask", None),
    ask=step("Echo", None, asked="papers"),
    assess={"type": "parallel", "parallel_steps": ["health", "money"], "next_step": "usual"},
    health=step("Echo", "assess", of="health"),
    money=step("Echo", "assess", of="money"),
    usual=decision(
        "${intake.output.kind} == 'standard' or ${intake.output.kind} == 'preferred'", "premium", "refused", None
    ),
    refused=decision("${intake.output.kind} == 'declined'", "decline", "review", None),
    review=step("Echo", "second-look", again="${intake.output.again}"),
    second_look=decision("${review.output.again} != 'declined'", "premium", "decline", None),
    premium=step("Echo", "welcome", paid="${health.output.of} and ${money.output.of}"),
    welcome=step("Echo", None, welcome="${premium.output.paid}"),
    decline=step("Echo", None, declined="yes"),
)  # fmt: skip


def loop(collection: str, *body: str, following: str | None = "end", **config: Json) -> JsonObject:
    return {
        "type": "loop", "next_step": following,
        "loop_config": {"collection": collection, "loop_body": list(body), **config},
    }  # fmt: skip


ONE_BY_ONE = workflow(
    "weigh-in-order",
    "fetch",
    fetch=step("Fetch", "each", source="${workflow.input.source}"),
    each=loop(
        "${fetch.output.items}", "weigh", execution_mode="sequential", max_iterations=3, on_error="continue"
    ),
    weigh=step(
        "Weigh",
        None,
        item="${loop.item}",
        place="${loop.index}",
        of="${loop.total}",
        first="${loop.is_first}",
    ),
    end=step("Echo", None, weights="${each.output.iterations}", count="${each.output.total_count}"),
)

AT_ONCE = workflow(
    "weigh-at-once",
    "each",
    each=loop(
        "${workflow.input.items}", "weigh", execution_mode="parallel", max_parallelism=2, on_error="collect"
    ),
    weigh=step("Weigh", None, item="${loop.item}", last="${loop.is_last}"),
    end=step("Echo", None, weights="${each.output.iterations}", failed="${each.output.failed_count}"),
)

SEVERAL_STEPS_EACH = workflow(
    "wash-and-weigh",
    "prepare",
    prepare=step("Echo", "each", unit="${workflow.input.unit}"),
    each=loop("${workflow.input.items}", "wash", "weigh"),
    wash=step("Echo", "weigh", clean="${loop.item}"),
    weigh=step("Weigh", None, item="${wash.output.clean}", unit="${prepare.output.unit}"),
    end=step("Echo", None, weights="${each.output.iterations}"),
)


def fork(policy: str, **more: Json) -> JsonObject:
    branches: JsonObject = {
        "north": {"steps": ["north-1", "north-2"], "timeout_seconds": 20},
        "south": {"steps": ["south-1"]},
        "west": {"steps": ["west-1"]},
    }
    config: JsonObject = {"branches": branches, "join_policy": policy, "branch_timeout_seconds": 30, **more}
    return {"type": "fork_join", "fork_join_config": config, "next_step": "end"}


def forked(policy: str, **more: Json) -> JsonObject:
    return workflow(
        f"ask-{policy}",
        "ask",
        ask=fork(policy, **more),
        north_1=step("Echo", None, way="${workflow.input.way}"),
        north_2=step("North", None, way="${north-1.output.way}"),
        south_1=step("South", None, way="${workflow.input.way}"),
        west_1=step("West", None, way="${workflow.input.way}"),
        end=step("Echo", None, all="${ask.output}"),
    )


# What comes after the fork reads a branch that may not be over yet, in every way that there is.
READS_A_LATE_BRANCH = workflow(
    "do-not-wait",
    "ask",
    ask={
        "type": "fork_join",
        "fork_join_config": {
            "branches": {"slow": {"steps": ["late"]}, "quick": {"steps": ["soon"]}}, "join_policy": "any",
        },
        "next_step": "check",
    },
    late=step("Late", None, x="1"),
    soon=step("Echo", None, word="soon"),
    check=decision("${late.output.word} == 'late' and ${late.output.n} > 0", "heard", "unheard", None),
    heard=step("Echo", None, word="${late.output.word}"),
    unheard=step(
        "Next",
        None,
        one="${late.output.word}",
        two="${ask.output.slow.word}",
        all="${ask.output}",
        line="I heard ${soon.output.word} and ${late.output.word}",
    ),
)  # fmt: skip


# Not the step that joins the branches reads them, but one after it; and it reads a step in the middle of a branch.
READS_BRANCHES_LATER = workflow(
    "look-back",
    "ask",
    ask={
        "type": "fork_join",
        "fork_join_config": {
            "branches": {
                "north": {"steps": ["north-1", "north-2", "north-3"]},
                "south": {"steps": ["south-1"]},
                "west": {"steps": ["west-1", "west-2"]},
            },
            "join_policy": "any",
        },
        "next_step": "then",
    },
    north_1=step("Echo", None, way="${workflow.input.way}"),
    north_2=step("North", None, way="${north-1.output.way}"),
    north_3=step("Echo", None, way="further"),
    south_1=step("South", None, way="${workflow.input.way}"),
    west_1=step("West", None, way="${workflow.input.way}"),
    west_2=step("Echo", None, way="further"),
    then=step("Echo", "end", way="on"),
    end=step(
        "Echo",
        None,
        north="${north-2.output.went}",
        within="${north-1.output.way}",
        south="${south-1.output.went}",
        all="${ask.output}",
    ),
)


@asynccontextmanager
async def agents(system: RunningSystem, answers: Answers) -> AsyncGenerator[ScriptedAgent]:
    """Agents that answer so, registered under their names."""

    async def answer(call: Call) -> Json:
        given = call.body["input"]
        assert isinstance(given, dict)
        try:
            made = answers[call.path.strip("/")](given)
            output = await made if isinstance(made, Awaitable) else made
        except AgentRefused as refusal:
            return {"task_id": call.id, "status": "error", "output": None, "error": str(refusal)}
        return {"task_id": call.id, "status": "success", "output": output, "error": None}

    async with ScriptedAgent(answer) as agent:
        for name in answers:
            await system.register(
                name,
                agent.url.replace("/agent", f"/{name}"),
                protocol="simple-a2a",
                retry={"max_attempts": 1},
            )
        yield agent
