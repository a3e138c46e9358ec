"""Rules of subscriptions: every change is reported, in order per run, and none that did not happen."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, ReplaceText
from tests.sabotage.rule import Rule

_REPORTER = "tests/unit/services/subscriptions/test_reporter.py"
_STORE = "tests/contract/stores/test_subscriptions.py"
_SCENARIO = "tests/scenarios/test_subscriptions.py"

SUBSCRIPTIONS: Sequence[Rule] = (
    Rule(
        name="changes-are-reported",
        breaks="A receiver never learns of a change.",
        symbol="trunkline.executor.driver:RunDriver._report",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(f"{_SCENARIO}::test_a_delivery_can_be_sent_again[embedded]",),
        shows="TimeoutError",
    ),
    Rule(
        name="deliveries-of-a-run-share-a-queue",
        breaks="A receiver learns of a run's later change before an earlier one.",
        symbol="trunkline.services.subscriptions.reporter:queue_of",
        change=Change("argument", 2, of=3, becomes="id(object()) % LANES"),
        caught_by=(f"{_REPORTER}::test_the_deliveries_of_a_run_are_in_one_queue_in_their_order",),
    ),
    Rule(
        name="subscriptions-are-read-again",
        breaks="Changes are never reported to a subscription that another process has saved.",
        symbol="trunkline.services.subscriptions.directory:SubscriptionDirectory.wanted_types",
        change=Change("condition", 1, of=1, becomes="not self._stale_at"),
        caught_by=(f"{_REPORTER}::test_a_subscription_of_another_process_counts_after_a_second",),
    ),
    Rule(
        name="failures-have-a-beginning",
        breaks="A subscription whose receiver is gone is called forever.",
        symbol="trunkline.stores.sqlite.tables.automation.subscriptions:_NOTE_FAILURE",
        change=ReplaceText("coalesce(failing_since, ?2)", "?2"),
        caught_by=(f"{_STORE}::test_a_subscription_that_fails_for_too_long_is_disabled[sqlite]",),
    ),
    Rule(
        name="pending-delivery-is-not-renewed",
        breaks="A delivery that is being sent is sent twice.",
        symbol="trunkline.stores.sqlite.tables.automation.subscriptions:_RENEW",
        change=ReplaceText(" AND status <> 'pending'", ""),
        caught_by=(f"{_STORE}::test_a_delivery_that_has_ended_can_be_renewed[sqlite]",),
    ),
)
