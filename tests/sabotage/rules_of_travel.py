"""Rules of what travels between executor and bridge: outbox, relay, consumers, resends."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_DELIVERIES = "tests/unit/services/messaging/test_deliveries.py"
_RELAY = "tests/unit/services/messaging/test_relay.py"
_WORKER = "tests/unit/bridge/test_commit_parts.py"
_ARRIVED = "tests/unit/executor/test_input_sources.py"
_PUBLISHING = "tests/unit/brokers/test_kafka_publishing.py"
_RESENDS = "tests/unit/executor/test_task_resending.py"
_BROKER = "tests/contract/test_broker.py"
_OFFSETS = "tests/contract/test_kafka_offsets.py"
_LANES = "tests/unit/brokers/test_lanes.py"

TRAVEL: Sequence[Rule] = (
    Rule(
        name="offset-after-the-commit",
        breaks="Records whose transaction fails are gone: the broker does not bring them again.",
        file="services/messaging/deliveries.py",
        old="        self._dead = []\n        if not self._carried:\n",
        new="        self._dead = []\n        self._source.settle(self._carried)\n        if not self._carried:\n",
        caught_by=(f"{_DELIVERIES}::test_when_the_store_is_away_the_same_records_wait",),
    ),
    Rule(
        name="offset-passes-nobody",
        breaks="A record that is settled out of turn takes those before it along.",
        file="brokers/kafka/lanes.py",
        old="return next(iter(self._unsettled), self._end)",
        new="return self._end",
        caught_by=(f"{_LANES}::test_an_offset_does_not_pass_a_record_that_is_not_settled",),
    ),
    Rule(
        name="offset-by-hand",
        breaks="What was handed out and not stored is gone when the consumer leaves.",
        file="brokers/kafka/polling.py",
        old="            enable_auto_commit=False,\n            enable_auto_offset_store=False,\n",
        new="            enable_auto_commit=True,\n",
        caught_by=(
            f"{_OFFSETS}::test_a_consumer_that_leaves_tells_of_what_is_settled_and_of_nothing_else[0]",
        ),
    ),
    Rule(
        name="outbox-until-it-is-sent",
        breaks="What a relay has taken and could not send is lost.",
        file="services/messaging/relay.py",
        old="                    kept = await self._send(tx, taken) if taken else 0\n",
        new="                kept = await self._send(tx, taken) if taken else 0\n",
        caught_by=(
            f"{_RELAY}::test_a_stop_does_not_wait_for_a_broker_that_is_away",
            f"{_RELAY}::test_a_relay_that_is_cancelled_while_it_sends_forgets_nothing",
        ),
    ),
    Rule(
        name="undelivered-goes-back",
        breaks="What the broker refused is lost.",
        file="services/messaging/relay.py",
        old="kept = [*held, *(message for message, _ in undelivered)]",
        new="kept = held",
        caught_by=(f"{_RELAY}::test_what_was_not_delivered_stays_and_the_rest_goes",),
    ),
    Rule(
        name="task-remembered",
        breaks="A task that is lost on its way is never sent again: its run waits for ever.",
        file="brokers/kafka/broker.py",
        old="        if dispatches:\n",
        new="        if not dispatches:\n",
        caught_by=(
            f"{_PUBLISHING}::test_a_published_task_is_in_the_outbox_and_is_remembered",
            f"{_RESENDS}::test_a_task_whose_result_does_not_come_is_sent_again_ever_more_rarely",
        ),
    ),
    Rule(
        name="task-sent-again",
        breaks="A task that is lost on its way is never sent again: its run waits for ever.",
        file="executor/task_resending.py",
        old="        if due:\n",
        new="        if not due:\n",
        caught_by=(
            f"{_RESENDS}::test_a_task_whose_result_does_not_come_is_sent_again_ever_more_rarely",
            f"{_RESENDS}::test_a_task_that_was_sent_again_in_a_turn_that_failed_is_still_due",
        ),
    ),
    Rule(
        name="task-settled-by-its-last-result",
        breaks="A task is forgotten when its agent begins to work: if the end is lost, the run waits for ever.",
        file="executor/input_sources.py",
        old='frozenset({"working", "progress", "unknown"})',
        new="frozenset({})",
        caught_by=(f"{_ARRIVED}::test_a_task_is_sent_again_until_its_last_result_is_here",),
    ),
    Rule(
        name="task-settled",
        breaks="A task whose result is here is sent again for ever.",
        file="executor/input_sources.py",
        old="    if ended:\n",
        new="    if not ended:\n",
        caught_by=(f"{_ARRIVED}::test_a_result_wakes_its_run_and_its_task_is_not_sent_again",),
    ),
    Rule(
        name="result-into-the-inbox",
        breaks="A result is settled at the broker and never reaches its run.",
        file="executor/input_sources.py",
        old="    await take_results(tx, results)\n    ended",
        new="    ended",
        caught_by=(f"{_ARRIVED}::test_a_result_wakes_its_run_and_its_task_is_not_sent_again",),
    ),
    Rule(
        name="result-by-its-key",
        breaks="A result that is delivered twice is taken in twice.",
        file="executor/input_sources.py",
        old='/{result.attempt}{number}"',
        new='/{result.attempt}{number}/{id(result)}"',
        caught_by=(f"{_BROKER}::test_what_is_published_twice_counts_once[sqlite-memory]",),
    ),
    Rule(
        name="result-kept",
        breaks="A result that is lost on its way exists nowhere any more.",
        file="bridge/commit_parts.py",
        old='or item.result.status == "progress" or self._broker.hands_over_in_transaction:',
        new='or item.result.status == "progress" or self._broker is not None:',
        caught_by=(
            f"{_WORKER}::test_an_answer_is_kept_until_its_result_has_arrived",
            f"{_WORKER}::test_a_task_that_is_sent_again_has_its_result_published_again_and_is_not_called",
        ),
    ),
    Rule(
        name="result-without-a-call-kept",
        breaks="That a call is in doubt is told once, and if that is lost, its run waits for ever.",
        file="bridge/commit_parts.py",
        old="        if not self._broker.hands_over_in_transaction:\n",
        new="        if self._broker.hands_over_in_transaction:\n",
        caught_by=(
            f"{_WORKER}::test_a_call_that_must_not_be_made_twice_is_told_as_unknown_and_that_is_kept",
        ),
    ),
    Rule(
        name="result-published-again",
        breaks="A task whose result was lost is sent again and again, and nobody answers.",
        file="bridge/commit_parts.py",
        old="            if known:\n",
        new="            if not known:\n",
        caught_by=(
            f"{_WORKER}::test_a_task_that_is_sent_again_has_its_result_published_again_and_is_not_called",
        ),
    ),
    Rule(
        name="poison-is-put-aside",
        breaks="One record that the store refuses stops its partition.",
        file="services/messaging/deliveries.py",
        old="        self._careful = True\n",
        new="        self._careful = False\n",
        caught_by=(f"{_DELIVERIES}::test_what_the_store_refuses_is_found_among_the_others_and_put_aside",),
        shows="no column can hold it",
    ),
    Rule(
        name="poison-alone",
        breaks="Good records go to the dead letters with the bad one beside them.",
        file="services/messaging/deliveries.py",
        old="            if len(deliveries) == 1:\n                self._dead.append(",
        new="            if deliveries:\n                self._dead.append(",
        caught_by=(
            f"{_DELIVERIES}::test_what_the_store_refuses_is_found_among_the_others_and_put_aside",
            f"{_DELIVERIES}::test_of_a_record_that_is_refused_nothing_is_written_and_of_the_others_all",
        ),
    ),
    Rule(
        name="unreadable-is-kept",
        breaks="A record that cannot be read disappears.",
        file="services/messaging/deliveries.py",
        old="                self._dead.append(_Dead(record, exc.flaw, exc.reason))\n",
        new="                del exc\n",
        caught_by=(f"{_DELIVERIES}::test_a_record_that_comes_twice_is_one_dead_letter",),
    ),
    Rule(
        name="away-is-no-refusal",
        breaks="While the database is away good records go to the dead letters.",
        file="services/messaging/deliveries.py",
        old="        except Unavailable:\n            raise\n        except Exception",
        new="        except Exception",
        caught_by=(
            f"{_DELIVERIES}::test_a_store_that_goes_away_while_a_bad_record_is_looked_for_condemns_nobody",
        ),
        shows="DID NOT RAISE",
    ),
)
