"""Rules of calls: when they start, with which id, and what a stop or a lost lease does to them."""

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
        name="side-effects-after-the-commit",
        breaks="Agents are called and clients answered for a turn that then fails.",
        symbol="trunkline.services.commit_loop:CommitLoop._turn",
        change=Change("call statement", 1, of=8, becomes="it\nit.value.value.func.value.committed()"),
        caught_by=(
            f"{_COMMITS}::test_a_turn_that_fails_is_never_reported_as_committed_and_leaves_nothing",
            f"{_COMMITS}::test_parts_are_notified_of_a_commit_when_it_is_durable_and_all_have_worked",
        ),
    ),
    Rule(
        name="call-after-the-claim",
        breaks="An agent is called although its claim was rolled back, and called again by the next bridge that "
        "claims the task.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.rolled_back",
        change=Change("call", becomes="it.func.value.committed()"),
        caught_by=(f"{_WORKER}::test_an_agent_is_called_only_when_the_claim_is_durable",),
    ),
    Rule(
        name="claim-with-an-unknown-commit",
        breaks="A commit that only appeared to fail leaves claims with a bridge that never calls their agents.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.rolled_back",
        change=Change("assigned value", 1, of=2, becomes="False"),
        caught_by=(f"{_WORKER}::test_a_claim_whose_commit_was_reported_as_failed_is_called",),
    ),
    Rule(
        name="stop-received-by-another-bridge",
        breaks="An agent that is still working when the stop arrives is never asked to stop.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.committed",
        change=Drop("call statement", 6, of=7),
        caught_by=(f"{_WORKER}::test_an_agent_that_still_works_at_shutdown_is_reported",),
    ),
    Rule(
        name="answer-of-the-next-turn",
        breaks="An answer that arrives while a turn waits for the store is lost.",
        symbol="trunkline.bridge.answer_writer:AnswerWriter.committed",
        change=Change("argument", 1, of=1, becomes="len(self._calls.updates)"),
        caught_by=(f"{_WORKER}::test_an_answer_that_comes_during_a_turn_waits_for_the_next",),
    ),
    Rule(
        name="expired-bridge-publishes-nothing",
        breaks="The executor receives the answer of a bridge that has lost its claim.",
        symbol="trunkline.bridge.answer_writer:AnswerWriter.work",
        change=Drop("operand", 4, of=6),
        caught_by=(f"{_WORKER}::test_an_answer_that_is_not_ours_any_more_is_not_published",),
    ),
    Rule(
        name="remote-task-is-not-sent-again",
        breaks="An agent that works on a task gets it again instead of being polled.",
        symbol="trunkline.bridge.calls.agent_call:AgentCall._call",
        change=Change("condition", 5, of=6, becomes="True"),
        caught_by=(f"{_RUNS}::test_an_agent_that_works_first_is_asked_until_it_is_done",),
    ),
    Rule(
        name="task-id-derived",
        breaks="A repeated call has a new id: the agent cannot recognise it, and no late answer matches.",
        symbol="trunkline.ids:task_id",
        change=Change("f-string", 3, of=3, becomes="f\"{it}/{__import__('os').urandom(4).hex()}\""),
        caught_by=(
            f"{_MACHINE_RETRIES}::test_a_call_without_an_answer_is_made_again_under_the_same_task_id",
        ),
    ),
    Rule(
        name="message-id-derived",
        breaks="A repeated call has a new messageId: the agent does the work twice.",
        symbol="trunkline.protocols.a2a.v03.request:message_params",
        change=Change("f-string", becomes="f'{it}-{it.values[1].value.value.attempt}'"),
        caught_by=(f"{_RETRIES}::test_a_call_without_an_answer_is_repeated_under_the_same_id",),
    ),
    Rule(
        name="lost-answer-is-an-unknown-outcome",
        breaks="An at_most_once call whose answer was lost counts as failed.",
        symbol="trunkline.machine.steps.failure:fail_attempt",
        change=Change("operand", 3, of=3, becomes="False"),
        caught_by=(
            f"{_AT_MOST_ONCE}::test_a_sent_call_without_an_answer_stops_in_doubt_and_is_never_made_again",
        ),
    ),
    Rule(
        name="stop-claims-nothing",
        breaks="A bridge that is shutting down starts calls that it has to abandon.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.work",
        change=Change("assigned value", 3, of=11, becomes="True"),
        caught_by=(f"{_WORKER}::test_a_bridge_that_is_to_stop_claims_nothing_more",),
    ),
    Rule(
        name="stop-waits-for-calls",
        breaks="Every deployment calls agents twice.",
        symbol="trunkline.wiring.system:_running",
        change=Drop("call statement", 8, of=9),
        caught_by=(f"{_RESTARTS}::test_a_call_in_flight_may_end_during_the_stop_and_is_not_made_again",),
    ),
    Rule(
        name="reclaim-needs-a-valid-lease",
        breaks="A bridge that was disconnected takes the claims of live bridges as soon as it reconnects.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer._check_other_bridges",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_WORKER}::test_what_the_dead_have_left_is_taken_only_by_who_holds_a_lease_itself",),
    ),
    Rule(
        name="grace-after-a-lease-was-lost",
        breaks="When the database is back, the first bridge takes the claims of all others and repeats their calls.",
        symbol="trunkline.bridge.lease_heartbeat:Heartbeat.beat",
        change=Change("assigned value", 2, of=3, becomes="it.args[0]"),
        caught_by=(
            f"{_HEARTBEAT}::test_who_was_away_for_longer_than_its_lease_lets_the_others_come_back_first",
        ),
    ),
)
