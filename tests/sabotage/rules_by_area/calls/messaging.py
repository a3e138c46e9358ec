"""Rules of the messages between executor and bridge: outbox, relay, consumers, resends."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_DELIVERIES = "tests/unit/services/messaging/test_deliveries.py"
_OUTBOX = "tests/contract/stores/test_outbox.py"
_RELAY = "tests/unit/services/messaging/test_relay.py"
_WORKER = "tests/unit/bridge/test_task_claimer.py"
_ARRIVED = "tests/unit/executor/test_input_sources.py"
_PUBLISHING = "tests/unit/brokers/kafka/test_publishing.py"
_RESENDS = "tests/unit/executor/test_task_resending.py"
_BROKER = "tests/contract/test_broker.py"
_OFFSETS = "tests/contract/kafka/test_offsets.py"
_LANES = "tests/unit/brokers/kafka/test_partitions.py"

MESSAGING: Sequence[Rule] = (
    Rule(
        name="offset-after-the-commit",
        breaks="Records whose transaction fails are lost: the broker does not deliver them again.",
        symbol="trunkline.services.messaging.deliveries:Deliveries.work",
        change=Change("assignment", 2, of=6, becomes="it\nit.value.func.value.settle(it.targets[0])"),
        caught_by=(f"{_DELIVERIES}::test_when_the_store_is_away_the_same_records_wait",),
    ),
    Rule(
        name="offset-skips-no-record",
        breaks="A record that is settled out of order commits the records before it.",
        symbol="trunkline.brokers.kafka.partitions:AssignedPartition.committable",
        change=Change("return value", becomes="it.args[1]"),
        caught_by=(f"{_LANES}::test_an_offset_does_not_pass_a_record_that_is_not_settled",),
    ),
    Rule(
        name="offset-by-hand",
        breaks="Records that were delivered but not stored are lost when the consumer leaves.",
        symbol="trunkline.brokers.kafka.consumer_thread:ConsumerThread._consumer",
        change=(Change("keyword", 6, of=11, becomes="True"), Drop("keyword", 7, of=11)),
        caught_by=(
            f"{_OFFSETS}::test_a_consumer_that_leaves_tells_of_what_is_settled_and_of_nothing_else[0]",
        ),
    ),
    Rule(
        name="outbox-until-it-is-sent",
        breaks="Messages that a relay has read but could not send are lost.",
        symbol="trunkline.services.messaging.relay:Relay._publish_all",
        change=Change(
            "with statement",
            becomes="async with it.items[0].context_expr as it.items[0].optional_vars:\n"
            "    it.body[0]\n    it.body[1]\nit.body[2]",
        ),
        caught_by=(
            f"{_RELAY}::test_a_stop_does_not_wait_for_a_broker_that_is_away",
            f"{_RELAY}::test_a_relay_that_is_cancelled_while_it_sends_forgets_nothing",
        ),
    ),
    Rule(
        name="reservations-pass",
        breaks="Messages that a process had reserved when it died are never sent.",
        symbol="trunkline.stores.postgres.tables.messaging:_TAKE_OUTBOX",
        change=ReplaceText("reserved_until <= $2", "reserved_until <= $2::bigint - 1000000000000000"),
        caught_by=(
            f"{_OUTBOX}::test_what_its_transaction_reserves_is_taken_by_no_other_for_a_while[postgres]",
        ),
    ),
    Rule(
        name="undelivered-from-memory-stays-in-the-outbox",
        breaks="A message that the broker rejects is lost when it is sent from memory.",
        symbol="trunkline.services.messaging.relay:Relay._send_offered",
        change=Drop("call statement", 5, of=6),
        caught_by=(
            f"{_RELAY}::test_what_could_not_be_sent_from_memory_stays_in_the_outbox_and_the_rest_goes",
        ),
    ),
    Rule(
        name="undelivered-stays-in-the-outbox",
        breaks="A message that the broker rejects is lost.",
        symbol="trunkline.services.messaging.relay:Relay._send",
        change=Change("assigned value", 5, of=5, becomes="it.elts[0].value"),
        caught_by=(f"{_RELAY}::test_what_was_not_delivered_stays_and_the_rest_goes",),
    ),
    Rule(
        name="task-remembered",
        breaks="A task that is lost on its way is never sent again, and its run waits forever.",
        symbol="trunkline.brokers.kafka.broker:KafkaBroker.publish_tasks",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(
            f"{_PUBLISHING}::test_a_published_task_is_in_the_outbox_and_is_remembered",
            f"{_RESENDS}::test_a_task_whose_result_does_not_come_is_sent_again_ever_more_rarely",
        ),
    ),
    Rule(
        name="task-sent-again",
        breaks="A task that is lost on its way is never sent again, and its run waits forever.",
        symbol="trunkline.executor.task_resending:TaskResender.work",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(
            f"{_RESENDS}::test_a_task_whose_result_does_not_come_is_sent_again_ever_more_rarely",
            f"{_RESENDS}::test_a_task_that_was_sent_again_in_a_turn_that_failed_is_still_due",
        ),
    ),
    Rule(
        name="task-settled-by-its-last-result",
        breaks="A task is forgotten when its agent starts to work: if the final result is lost, the run waits forever.",
        symbol="trunkline.executor.input_sources:_NOT_THE_END",
        change=Change("assigned value", becomes="it.func({})"),
        caught_by=(f"{_ARRIVED}::test_a_task_is_sent_again_until_its_last_result_is_here",),
    ),
    Rule(
        name="task-settled",
        breaks="A task whose result has arrived is sent again forever.",
        symbol="trunkline.executor.input_sources:queue_delivered_results",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_ARRIVED}::test_a_result_wakes_its_run_and_its_task_is_not_sent_again",),
    ),
    Rule(
        name="result-into-the-input-queue",
        breaks="A result is settled at the broker but never reaches its run.",
        symbol="trunkline.executor.input_sources:queue_delivered_results",
        change=Drop("call statement", 1, of=2),
        caught_by=(f"{_ARRIVED}::test_a_result_wakes_its_run_and_its_task_is_not_sent_again",),
    ),
    Rule(
        name="result-by-its-key",
        breaks="A result that is delivered twice is applied twice.",
        symbol="trunkline.executor.input_sources:_key",
        change=Change("return value", becomes="f'{it}/{id(it.values[0].value.value)}'"),
        caught_by=(f"{_BROKER}::test_what_is_published_twice_counts_once[sqlite-memory]",),
    ),
    Rule(
        name="large-input-kept",
        breaks="After a crash, an agent is called again with a large input missing.",
        symbol="trunkline.bridge.answer_writer:AnswerWriter._stored_answer",
        change=Change("condition", 2, of=3, becomes="True"),
        caught_by=(f"{_WORKER}::test_a_large_task_keeps_its_input_until_it_is_done[False]",),
        shows="assert",
    ),
    Rule(
        name="result-kept",
        breaks="A result that is lost on its way cannot be recovered.",
        symbol="trunkline.bridge.answer_writer:AnswerWriter._stored_answer",
        change=Change("operand", 3, of=3, becomes="True"),
        caught_by=(
            f"{_WORKER}::test_an_answer_is_kept_until_its_result_has_arrived",
            f"{_WORKER}::test_a_task_that_is_sent_again_has_its_result_published_again_and_is_not_called",
        ),
    ),
    Rule(
        name="result-without-a-call-kept",
        breaks="An unknown outcome is published once: if the message is lost, the run waits forever.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer._publish",
        change=Change("condition", 2, of=2, becomes="it.operand"),
        caught_by=(f"{_WORKER}::test_an_unrepeatable_call_is_reported_as_unknown_and_stays_so",),
    ),
    Rule(
        name="result-published-again",
        breaks="A task whose result was lost is sent again and again, and its result never comes.",
        symbol="trunkline.bridge.task_claimer:TaskClaimer.take_tasks",
        change=Change("condition", 4, of=5, becomes="False"),
        caught_by=(
            f"{_WORKER}::test_a_task_that_is_sent_again_has_its_result_published_again_and_is_not_called",
        ),
    ),
    Rule(
        name="poison-record-becomes-a-dead-letter",
        breaks="One record that the store rejects blocks its partition.",
        symbol="trunkline.services.messaging.deliveries:Deliveries.rolled_back",
        change=Change("assigned value", becomes="False"),
        caught_by=(
            f"{_DELIVERIES}::test_the_record_that_the_store_refuses_is_found_and_becomes_a_dead_letter",
        ),
        shows="no column can hold it",
    ),
    Rule(
        name="only-the-poison-record",
        breaks="Valid records become dead letters together with the invalid one.",
        symbol="trunkline.services.messaging.deliveries:Deliveries._take_carefully",
        change=Change("condition", becomes="True"),
        caught_by=(
            f"{_DELIVERIES}::test_the_record_that_the_store_refuses_is_found_and_becomes_a_dead_letter",
            f"{_DELIVERIES}::test_of_a_record_that_is_refused_nothing_is_written_and_of_the_others_all",
        ),
    ),
    Rule(
        name="unreadable-record-is-kept",
        breaks="A record that cannot be read disappears.",
        symbol="trunkline.services.messaging.deliveries:Deliveries._read",
        change=Drop("call statement", 2, of=4),
        caught_by=(f"{_DELIVERIES}::test_a_record_that_comes_twice_is_one_dead_letter",),
    ),
    Rule(
        name="outage-is-not-a-rejection",
        breaks="Valid records become dead letters while the database is unreachable.",
        symbol="trunkline.services.messaging.deliveries:Deliveries._take_carefully",
        change=Drop("except clause", 1, of=2),
        caught_by=(
            f"{_DELIVERIES}::test_a_store_that_fails_while_a_bad_record_is_looked_for_makes_no_dead_letter",
        ),
        shows="DID NOT RAISE",
    ),
)
