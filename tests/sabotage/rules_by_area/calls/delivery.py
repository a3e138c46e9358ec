"""Rules of calls: when they begin, under which name, and what a stop or a lost lease means for them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_WORKER = "tests/unit/bridge/test_task_claimer.py"
_HEARTBEAT = "tests/unit/bridge/test_heartbeat.py"
_COMMITS = "tests/unit/services/test_commit_loop.py"
_MACHINE_RETRIES = "tests/unit/machine/steps/test_retries.py"
_AT_MOST_ONCE = "tests/unit/machine/steps/test_at_most_once.py"
_RESTARTS = "tests/scenarios/test_restarts.py"
_RUNS = "tests/scenarios/test_runs.py"
_RETRIES = "tests/scenarios/test_retries.py"

DELIVERY: Sequence[Rule] = (
    Rule(
        name="told-after-the-commit",
        breaks="Agents are called and clients answered for a turn that then fails.",
        symbol="trunkline.services.commit_loop:CommitLoop._turn",
        change=Change("call statement", 1, of=8, becomes="it\nit.value.value.func.value.committed()"),
        caught_by=(
            f"{_COMMITS}::test_a_turn_that_fails_is_never_told_as_committed_and_leaves_nothing",
            f"{_COMMITS}::test_parts_hear_of_a_commit_when_it_is_durable_and_all_have_worked",
        ),
    ),
    Rule(
        name="call-after-the-claim",
        breaks="An agent is called though its claim was rolled back, and called again by whoever claims it then.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.rolled_back",
        change=Change("call", becomes="it.func.value.committed()"),
        caught_by=(f"{_WORKER}::test_an_agent_is_called_only_when_the_claim_is_durable",),
    ),
    Rule(
        name="claim-committed-unheard",
        breaks="What was claimed by a commit that only seemed to fail is held by a bridge that never calls it.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.rolled_back",
        change=Change("assigned value", 1, of=2, becomes="False"),
        caught_by=(f"{_WORKER}::test_a_claim_that_was_committed_though_we_were_told_it_was_not_is_called",),
    ),
    Rule(
        name="stop-that-another-bridge-heard",
        breaks="An agent that goes on when the stop comes is never told.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.committed",
        change=Drop("call statement", 6, of=7),
        caught_by=(f"{_WORKER}::test_an_agent_that_goes_on_when_the_stop_comes_is_told",),
    ),
    Rule(
        name="answer-of-the-next-turn",
        breaks="An answer that comes while a turn waits for the store is lost.",
        symbol="trunkline.bridge.answer_writer:AnswerWriter.committed",
        change=Change("del statement", becomes="it.targets[0].value.clear()"),
        caught_by=(f"{_WORKER}::test_an_answer_that_comes_during_a_turn_waits_for_the_next",),
    ),
    Rule(
        name="zombie-publishes-nothing",
        breaks="The executor hears the answer of a bridge that has lost its task.",
        symbol="trunkline.bridge.answer_writer:AnswerWriter.work",
        change=Drop("operand", 4, of=6),
        caught_by=(f"{_WORKER}::test_an_answer_that_is_not_ours_any_more_is_not_published",),
    ),
    Rule(
        name="remote-task-asked",
        breaks="An agent that works on a task gets it again instead of being asked how it stands.",
        symbol="trunkline.bridge.calls.agent_call:AgentCall._call",
        change=Change("condition", 5, of=6, becomes="True"),
        caught_by=(f"{_RUNS}::test_an_agent_that_works_first_is_asked_until_it_is_done",),
    ),
    Rule(
        name="task-id-derived",
        breaks="A call that is made again has another name: its agent cannot see that, and no late answer fits.",
        symbol="trunkline.ids:task_id",
        change=Change("f-string", 2, of=2, becomes="f\"{it}/{__import__('os').urandom(4).hex()}\""),
        caught_by=(
            f"{_MACHINE_RETRIES}::test_a_call_without_an_answer_is_made_again_under_the_same_task_id",
        ),
    ),
    Rule(
        name="message-id-derived",
        breaks="A call that is made again has another messageId: its agent does the work twice.",
        symbol="trunkline.protocols.a2a.v03.request:message_params",
        change=Change("f-string", becomes="f'{it}-{it.values[1].value.value.attempt}'"),
        caught_by=(f"{_RETRIES}::test_a_call_without_an_answer_is_repeated_under_the_same_id",),
    ),
    Rule(
        name="lost-answer-is-a-doubt",
        breaks="A call that must not be made twice, and whose answer was lost, passes for one that has failed.",
        symbol="trunkline.machine.steps.failure:fail_attempt",
        change=Change("operand", 3, of=3, becomes="False"),
        caught_by=(
            f"{_AT_MOST_ONCE}::test_a_sent_call_without_an_answer_stops_in_doubt_and_is_never_made_again",
        ),
    ),
    Rule(
        name="stop-claims-nothing",
        breaks="A bridge that is to stop begins calls that it has to abandon.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.work",
        change=Change("assigned value", 3, of=9, becomes="True"),
        caught_by=(f"{_WORKER}::test_a_bridge_that_is_to_stop_claims_nothing_more",),
    ),
    Rule(
        name="stop-waits-for-calls",
        breaks="Every deployment calls agents twice.",
        symbol="trunkline.wiring.system:_running",
        change=Drop("call statement", 7, of=8),
        caught_by=(f"{_RESTARTS}::test_a_call_in_flight_may_end_during_the_stop_and_is_not_made_again",),
    ),
    Rule(
        name="reclaim-needs-a-lease-of-ones-own",
        breaks="A bridge that was cut off takes the calls of those that live, as soon as it is back.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer._check_other_bridges",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_WORKER}::test_what_the_dead_have_left_is_taken_only_by_who_holds_a_lease_itself",),
    ),
    Rule(
        name="grace-after-a-lease-was-lost",
        breaks="When the database comes back the first bridge takes the calls of all others, and makes them again.",
        symbol="trunkline.bridge.lease_heartbeat:Heartbeat.beat",
        change=Change("assigned value", 2, of=3, becomes="it.args[0]"),
        caught_by=(
            f"{_HEARTBEAT}::test_who_was_away_for_longer_than_its_lease_lets_the_others_come_back_first",
        ),
    ),
)
