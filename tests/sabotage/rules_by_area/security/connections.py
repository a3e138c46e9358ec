"""Rules of connections: which resources clients can use up, and what that means for runs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_SLOTS = "tests/unit/serving/test_acceptor.py"
_EXHAUSTED = "tests/scenarios/hostile/test_exhausted_descriptors.py"
_MEMORY = "tests/unit/transports/test_answer_memory.py"
_BODIES = "tests/unit/api/middleware/test_body_memory.py"
_CONNECTIONS = "tests/scenarios/api/test_connections.py"

CONNECTIONS: Sequence[Rule] = (
    Rule(
        name="connections-in-total",
        breaks="Connections from many addresses use up every file descriptor, and runs fail.",
        symbol="trunkline.serving.connection_limits:ConnectionSlots.take",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=(
            f"{_SLOTS}::test_busy_connections_fill_the_total",
            f"{_SLOTS}::test_the_oldest_idle_connection_goes_for_a_new_one",
        ),
    ),
    Rule(
        name="connections-of-one-address",
        breaks="One address takes every connection, and all other clients are rejected.",
        symbol="trunkline.serving.connection_limits:ConnectionSlots.take",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_SLOTS}::test_busy_connections_fill_what_one_address_may_have",),
    ),
    Rule(
        name="requests-keep-their-connection",
        breaks="A client that connects often enough interrupts the requests of others.",
        symbol="trunkline.serving.connection:HttpConnection.is_idle",
        change=Change("return value", 1, of=1, becomes="True"),
        caught_by=(
            f"{_CONNECTIONS}::test_a_connection_too_many_is_refused_with_a_problem_while_requests_are_in_progress[embedded]",
        ),
        shows="",
    ),
    Rule(
        name="own-shortage-costs-no-attempt",
        breaks="Clients that hold connections open make the steps of other people's runs fail.",
        symbol="trunkline.bridge.calls.agent_call:_check_resources",
        change=Change("condition", 1, of=1, becomes="False"),
        caught_by=(f"{_EXHAUSTED}::test_a_call_without_a_descriptor_waits_and_costs_no_attempt",),
    ),
    Rule(
        name="descriptors-for-calls",
        breaks="Client connections take the file descriptors that calls and the store need.",
        symbol="trunkline.wiring.descriptors:descriptor_shares",
        change=Change("keyword", 1, of=2, becomes="max_connections"),
        caught_by=(
            "tests/unit/wiring/test_descriptors.py::test_connections_and_calls_leave_descriptors_for_the_store",
        ),
    ),
    Rule(
        name="stalled-readers-are-cut",
        breaks="Clients that never read their responses hold memory for as long as they like.",
        symbol="trunkline.serving.connection:HttpConnection.pause_writing",
        change=Drop("call statement", 2, of=2),
        caught_by=(
            "tests/scenarios/hostile/test_stalled_readers.py::test_a_client_that_reads_nothing_is_cut[embedded]",
        ),
        shows="TimeoutError",
    ),
    Rule(
        name="heavy-requests-have-a-queue",
        breaks="One client that validates large workflows takes the processor from all runs.",
        symbol="trunkline.services.heavy_work:HeavyWork.run",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(
            "tests/unit/services/test_heavy_work.py::test_a_full_queue_refuses_more_and_takes_work_again_later",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="one-caller-does-not-fill-the-queue",
        breaks="One API key takes all places for requests that take long.",
        symbol="trunkline.services.heavy_work:HeavyWork.run",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=("tests/unit/services/test_heavy_work.py::test_one_caller_does_not_fill_the_queue",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="steps-have-a-limit",
        breaks="A workflow of 80,000 steps keeps the process busy for many seconds.",
        symbol="trunkline.workflow.validate:_workflow_steps",
        change=Change("condition", becomes="False"),
        caught_by=(
            "tests/scenarios/hostile/test_large_workflows.py::test_a_workflow_with_too_many_steps_is_refused[embedded]",
        ),
        shows="ValueError",
    ),
    Rule(
        name="push-notifications-are-coalesced",
        breaks="An agent that sends notifications without pause fills the store and wakes the bridge all the time.",
        symbol="trunkline.services.agents.push_notifications:PushNotifications._write_when_due",
        change=Change("condition", becomes="False"),
        caught_by=(
            "tests/contract/stores/test_push_notifications.py::test_notifications_without_pause_wait_for_the_interval[sqlite]",
        ),
    ),
    Rule(
        name="answers-share-a-budget",
        breaks="A hundred large answers at the same time take gigabytes, and the process is killed.",
        symbol="trunkline.transports.answer_memory:MemoryBudget.take",
        change=Change("operand", 2, of=4, becomes="True"),
        caught_by=(f"{_MEMORY}::test_calls_wait_in_order_until_there_is_memory_for_them",),
    ),
    Rule(
        name="large-answer-waits-for-memory",
        breaks="A hundred large answers at the same time are read at once, and the process is killed.",
        symbol="trunkline.transports.http1.connection:AgentConnection.data_received",
        change=Change("condition", 6, of=9, becomes="False"),
        caught_by=(
            "tests/scenarios/hostile/test_large_answers.py::test_an_answer_is_read_when_the_one_before_it_is_done_with[embedded-declared]",
        ),
    ),
    Rule(
        name="memory-until-the-result-is-stored",
        breaks="Answers that wait for a slow store take as much memory as they like.",
        symbol="trunkline.bridge.calls.active_calls:ActiveCalls._call",
        change=Change("condition", 3, of=4, becomes="True"),
        caught_by=(
            "tests/unit/bridge/calls/test_active_calls.py::test_an_answer_keeps_its_memory_until_its_result_is_stored",
        ),
    ),
    Rule(
        name="waiting-for-memory-costs-no-time",
        breaks="A call that waits for memory loses its attempt to its timeout.",
        symbol="trunkline.transports.https:_read_when_there_is_memory",
        change=Drop("assignment", 3, of=3),
        caught_by=(
            "tests/scenarios/hostile/test_large_answers.py::test_the_time_of_a_call_stands_still_while_it_waits_for_memory[embedded-declared]",
        ),
        shows="TransportError",
    ),
    Rule(
        name="runs-have-a-size",
        breaks="One large answer that a loop passes to each item fills the disk.",
        symbol="trunkline.machine.decide:_may_begin",
        change=Change("operand", 4, of=7, becomes="False"),
        caught_by=(
            "tests/unit/machine/test_run_size.py::test_a_large_output_that_each_item_gets_ends_the_run_before_all_items_have_it",
        ),
    ),
    Rule(
        name="kept-states-have-a-size",
        breaks="Two thousand large runs in progress keep gigabytes in memory.",
        symbol="trunkline.executor.run_state_cache:RunStateCache.keep",
        change=Change("operand", 2, of=2, becomes="False"),
        caught_by=(
            "tests/unit/executor/test_run_state_cache.py::test_what_is_kept_is_bounded_by_its_size_too",
        ),
    ),
    Rule(
        name="bodies-share-a-budget",
        breaks="Clients that send large bodies and never finish them take gigabytes, and the process is killed.",
        symbol="trunkline.api.middleware.body_memory:BodyMemory.take",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(
            f"{_BODIES}::test_one_client_has_half_and_all_clients_together_have_no_more_than_there_is",
        ),
        shows="ClientDisconnect",
    ),
    Rule(
        name="one-client-has-half-of-the-memory-for-bodies",
        breaks="One client takes all memory for bodies, and the large requests of all others are rejected.",
        symbol="trunkline.api.middleware.body_memory:BodyMemory.take",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(f"{_BODIES}::test_an_announced_body_is_refused_before_any_of_it_has_arrived",),
        shows="ClientDisconnect",
    ),
    Rule(
        name="memory-for-bodies-is-given-back",
        breaks="Each client that leaves in the middle of a large body takes its memory away from all others forever.",
        symbol="trunkline.api.middleware.body_memory:_Share.close",
        change=Change("condition", 1, of=1, becomes="False"),
        caught_by=(f"{_BODIES}::test_what_a_client_has_taken_is_given_back_when_it_leaves",),
    ),
    Rule(
        name="large-bodies-are-decoded-one-by-one",
        breaks="Large bodies that arrive together occupy the event loop for seconds, and all other requests wait.",
        symbol="trunkline.api.middleware.body_memory:BodyMemory._wait_for_turn",
        change=Drop("with statement", 1, of=1),
        caught_by=(f"{_BODIES}::test_large_bodies_that_have_arrived_together_are_passed_on_one_by_one",),
    ),
    Rule(
        name="bodies-have-a-number-of-objects",
        breaks="One body of four megabytes occupies the event loop for seconds, and all other requests wait.",
        symbol="trunkline.api.bodies:decode_json",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(
            "tests/unit/api/test_bodies.py::test_a_body_of_more_objects_than_its_length_suggests_is_refused",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="pages-have-a-size",
        breaks="One request for a page of large runs takes hundreds of megabytes.",
        symbol="trunkline.api.paging:read_within",
        change=Change("condition", 3, of=6, becomes="False"),
        caught_by=(
            "tests/unit/api/test_page_sizes.py::test_many_small_items_do_not_load_all_large_ones_behind_them",
        ),
    ),
)
