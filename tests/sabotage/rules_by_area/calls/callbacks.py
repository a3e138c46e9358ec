"""Rules of callbacks: none is lost, and each queue keeps its order."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_SENDER = "tests/unit/services/callbacks/test_sender.py"
_STORE = "tests/contract/stores/test_callbacks.py"
_CONFIGS = "tests/contract/stores/test_push_configs.py"
_PUSH = "tests/scenarios/publishing/test_push_notifications.py"
_CALLERS = "tests/scenarios/publishing/test_callers.py"
_ADDRESSES = "test_where_keys_are_required_updates_reach_only_public_and_allowed_addresses[embedded-]"
_POSTGRES = "trunkline.stores.postgres.tables.automation.callbacks"

CALLBACKS: Sequence[Rule] = (
    Rule(
        name="failed-callback-holds-its-queue",
        breaks="A receiver learns of a later change before an earlier one.",
        symbol="trunkline.services.callbacks.sender:CallbackSender._send_all",
        change=Change("return value", 2, of=3, becomes="True"),
        caught_by=(f"{_SENDER}::test_a_failed_callback_is_sent_again_before_those_behind_it",),
    ),
    Rule(
        name="lost-claim-settles-nothing",
        breaks="A process that was paused deletes callbacks that another one is sending, and they may fail there.",
        symbol="trunkline.stores.sqlite.tables.automation.callbacks:_SETTLE",
        change=ReplaceText(" AND claim = ?", " AND ? IS NOT NULL"),
        caught_by=(f"{_STORE}::test_a_claimed_queue_is_claimed_again_only_when_the_claim_has_ended[sqlite]",),
    ),
    Rule(
        name="putting-locks-the-queue",
        breaks="A callback that comes while its queue is settled as empty is never sent.",
        symbol=f"{_POSTGRES}:_LOCK_QUEUES",
        change=ReplaceText("DO UPDATE SET kind = excluded.kind", "DO NOTHING"),
        caught_by=(f"{_STORE}::test_a_callback_that_comes_while_its_queue_is_settled_as_empty_is_not_lost",),
    ),
    Rule(
        name="transition-puts-its-task-updates",
        breaks="A receiver of push notifications never learns of a change of its task.",
        symbol="trunkline.executor.driver:RunDriver._decide",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_PUSH}::test_every_state_arrives_in_order_when_the_receiver_is_back[embedded]",),
        shows="TimeoutError",
    ),
    Rule(
        name="config-comes-with-its-run",
        breaks="A crash between a run and its push notification config leaves a receiver without the first updates.",
        symbol="trunkline.services.callbacks.task_updates:put_first_configs",
        change=Drop("call statement", 1, of=2),
        caught_by=(f"{_PUSH}::test_every_state_arrives_in_order_when_the_receiver_is_back[embedded]",),
        shows="TimeoutError",
    ),
    Rule(
        name="config-waits-for-transitions",
        breaks="An update that comes while its config is created is never sent.",
        symbol="trunkline.stores.postgres.tables.published.push_configs:_LOCK_RUN",
        change=ReplaceText(" FOR UPDATE", ""),
        caught_by=(f"{_CONFIGS}::test_a_config_that_comes_while_a_transition_is_written_waits_for_it",),
    ),
    Rule(
        name="push-notifications-one-by-one",
        breaks="After a crash, a receiver gets earlier states of a task again after later ones.",
        symbol="trunkline.services.callbacks.sender:CallbackSender._send_claimed",
        change=Change("condition", 4, of=7, becomes="False"),
        caught_by=(f"{_SENDER}::test_callbacks_of_some_kinds_are_settled_one_by_one",),
    ),
    Rule(
        name="bodies-wait-for-memory",
        breaks="Receivers that are slow to take large notifications let the process run out of memory.",
        symbol="trunkline.services.callbacks.sender:CallbackSender._send",
        change=Change("condition", 1, of=1, becomes="False"),
        caught_by=(f"{_SENDER}::test_large_bodies_wait_for_memory",),
        shows="Timeout",
    ),
    Rule(
        name="claim-of-a-slow-receiver-is-extended",
        breaks="Two processes send the same update to a receiver that takes its time.",
        symbol="trunkline.services.callbacks.sender:CallbackSender._extend",
        change=Change("condition", 1, of=1, becomes="False"),
        caught_by=(f"{_SENDER}::test_a_claim_that_was_lost_to_another_process_is_not_extended",),
    ),
    Rule(
        name="only-the-owner-extends-a-claim",
        breaks="A process that was paused takes a queue from the one that is sending from it.",
        symbol="trunkline.stores.sqlite.tables.automation.callbacks:_EXTEND",
        change=ReplaceText(" AND claim = ?", " AND ? IS NOT NULL"),
        caught_by=(f"{_STORE}::test_a_claim_can_be_extended_by_its_owner_alone[sqlite]",),
    ),
    Rule(
        name="requests-wait-for-a-share-of-the-host",
        breaks="Many receivers on one slow host fill the memory with requests.",
        symbol="trunkline.services.callbacks.sender:CallbackSender._send_claimed",
        change=Change("condition", 6, of=7, becomes="False"),
        caught_by=(f"{_SENDER}::test_requests_are_not_made_before_the_host_has_a_share_left",),
    ),
    Rule(
        name="updates-wake-the-sender",
        breaks="Push notifications are late, although nothing else is to be done.",
        symbol="trunkline.executor.driver:RunDriver.committed",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(
            f"{_PUSH}::test_updates_are_sent_when_they_are_committed_and_not_when_they_are_looked_for[embedded]",
        ),
        shows="TimeoutError",
    ),
    Rule(
        name="address-of-a-config-is-checked",
        breaks="A caller learns only from failures that its receiver is never called.",
        symbol="trunkline.services.callbacks.push_configs:PushConfigs.check_address",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_CALLERS}::{_ADDRESSES}",),
    ),
    Rule(
        name="revoked-key-ends-its-push-notifications",
        breaks="A caller whose key was revoked is still told everything of its tasks.",
        symbol="trunkline.publishing.push.source:PushNotificationSource._why_not",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(
            "tests/scenarios/publishing/test_callers.py::test_nothing_is_sent_for_a_key_that_was_revoked",
        ),
        shows="Timeout",
    ),
    Rule(
        name="repeated-update-is-the-same",
        breaks="A receiver that has not accepted an update gets a different one when it is sent again.",
        symbol="trunkline.publishing.updates:TaskUpdates._sent_before",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(
            "tests/unit/publishing/test_update_reads.py::test_an_update_that_is_made_once_more_is_the_same",
        ),
    ),
    Rule(
        name="callbacks-are-http",
        breaks="Who may name the address of a receiver can start local programs.",
        symbol="trunkline.services.callbacks.sender:post_callback",
        change=Drop("call statement", 1, of=1),
        caught_by=(f"{_SENDER}::test_a_local_program_is_not_called",),
    ),
)
