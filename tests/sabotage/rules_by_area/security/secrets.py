"""Rules of named secrets: where they come from, and where they must never appear."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/test_secrets.py"
_PLACES = "tests/unit/bridge/calls/test_task_secrets.py"
_SERVICE = "tests/unit/services/security/test_secrets.py"
_REKEY = "tests/unit/services/security/test_rekey.py"
_VAULT = "tests/unit/services/security/test_vault.py"
_RUNS = "tests/scenarios/test_named_secrets.py"
_HIDDEN = "tests/scenarios/test_named_secrets_hidden.py"
_REPEATS = f"{_HIDDEN}::test_an_agent_that_repeats_a_named_secret_does_not_make_it_readable"

SECRETS: Sequence[Rule] = (
    Rule(
        name="secret-is-never-data",
        breaks="A client that starts a run, or an agent that answers one, can have any secret sent.",
        symbol="trunkline.machine.steps.agent:_add_secret_names",
        change=Change(
            "assigned value",
            1,
            of=3,
            becomes="__import__('trunkline.workflow.secret_references', fromlist=['x'])"
            ".secret_references(task.input_data)",
        ),
        caught_by=(
            f"{_MACHINE}::test_a_call_names_the_secrets_of_the_definition_and_nothing_that_came_as_data",
        ),
    ),
    Rule(
        name="reply-is-data",
        breaks="A reply that has the right shape gets a secret inserted.",
        symbol="trunkline.machine.steps.agent:_add_secret_names",
        change=Change("condition", 1, of=2, becomes="True"),
        caught_by=(
            f"{_MACHINE}::test_a_reply_of_the_shape_of_the_input_is_not_filled_in",
            f"{_MACHINE}::test_a_reply_is_data_and_the_secret_that_the_agent_has_is_still_to_be_hidden",
        ),
    ),
    Rule(
        name="secret-only-at-its-path",
        breaks="A message with a wrong path gets a secret inserted where the workflow has none.",
        symbol="trunkline.bridge.calls.task_secrets:_with",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_PLACES}::test_a_place_that_holds_anything_else_is_refused",),
    ),
    Rule(
        name="secret-in-a-copy",
        breaks="The value is in the claim, and is written wherever claims are written.",
        symbol="trunkline.bridge.calls.task_secrets:_with",
        change=Change(
            "return value", 2, of=3, becomes="it.values[0].update({it.keys[1]: it.values[1]}) or it.values[0]"
        ),
        caught_by=(f"{_PLACES}::test_a_secret_is_put_into_a_copy_and_the_task_stays_as_it_was",),
    ),
    Rule(
        name="secret-in-no-record",
        breaks="The value is in wire records, logs, outputs and topics.",
        symbol="trunkline.bridge.calls.recording:ExchangeRecorder.hide_secrets_of",
        change=Drop("keyword", 1, of=2),
        caught_by=(
            f"{_REPEATS}[embedded-simple output]",
            f"{_HIDDEN}::test_a_stream_that_repeats_a_named_secret_does_not_make_it_readable[embedded]",
            f"{_RUNS}::test_an_agent_that_is_cancelled_cannot_show_the_secret[embedded]",
        ),
    ),
    Rule(
        name="secret-is-sent-outside-batches",
        breaks="An agent's answer to a batch shows the secret of one call in the record of another.",
        symbol="trunkline.bridge.calls.recording:ExchangeRecorder.hide_secrets_of",
        change=Drop("keyword", 2, of=2),
        caught_by=(f"{_RUNS}::test_a_call_with_a_secret_does_not_travel_with_others[embedded]",),
    ),
    Rule(
        name="secret-in-no-line-of-a-program",
        breaks="The output of a program that prints its input puts the secret into our log.",
        symbol="trunkline.bridge.calls.context:CallContext.open_secrets",
        change=Change("argument", 8, of=8, becomes="it[:0]"),
        caught_by=(
            f"{_RUNS}::test_a_program_that_prints_what_it_got_does_not_bring_it_into_the_log[embedded]",
        ),
    ),
    Rule(
        name="secret-is-read-before-the-call",
        breaks="An agent is called with the name of a secret instead of its value.",
        symbol="trunkline.bridge.calls.agent_call:AgentCall._call",
        change=Change("operand", 4, of=6, becomes="False"),
        caught_by=(
            f"{_RUNS}::test_without_the_secret_nothing_is_sent_and_a_retry_after_it_is_set_goes_through[embedded]",
        ),
    ),
    Rule(
        name="no-poll-without-its-secret",
        breaks="The answers of a long task show a secret that was removed in the meantime.",
        symbol="trunkline.bridge.calls.agent_call:AgentCall._call",
        change=Change("condition", 6, of=6, becomes="True"),
        caught_by=(
            f"{_RUNS}::test_a_long_task_is_not_asked_while_what_it_repeats_could_not_be_hidden[embedded]",
        ),
    ),
    Rule(
        name="sent-secret-stays-hidden",
        breaks="An agent that repeats in one step what it received in another makes the secret readable.",
        symbol="trunkline.machine.steps.agent:_add_secret_names",
        change=Change("condition", 2, of=2, becomes="it.left in it.comparators[0]"),
        caught_by=(
            f"{_RUNS}::test_a_reply_is_data_and_what_the_agent_repeats_in_the_conversation_is_hidden[embedded]",
        ),
    ),
    Rule(
        name="previous-value-stays-hidden",
        breaks="A task that was called before a secret changed shows the previous value.",
        symbol="trunkline.services.security.secrets:Secrets.set",
        change=Change("element", 2, of=3, becomes="it.value[:0]"),
        caught_by=(f"{_SERVICE}::test_the_value_before_the_last_is_hidden_and_no_older_one",),
    ),
    Rule(
        name="secret-bound-to-its-name",
        breaks="A person with write access to the database can replace one secret with another.",
        symbol="trunkline.services.security.secrets:secret_owner",
        change=Change("return value", becomes="f'secret:{it.values[1].value[:0]}'"),
        caught_by=(f"{_SERVICE}::test_a_secret_is_kept_sealed_and_bound_to_its_name",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="rekey-keeps-a-change",
        breaks="A secret that is set during a rekey is replaced by its old value.",
        symbol="trunkline.stores.sqlite.tables.keys_and_secrets:_RESEAL",
        change=ReplaceText("AND sealed = ?", "AND ? IS NOT NULL"),
        caught_by=(
            "tests/contract/stores/test_secrets.py::test_a_secret_is_sealed_again_only_if_it_is_still_the_same[sqlite]",
        ),
    ),
    Rule(
        name="rekey-stops-stale-agent-changes",
        breaks="A change of an agent that began before the rekey writes back what the old key encrypted.",
        symbol="trunkline.services.security.rekey:_replace",
        change=Change("keyword", 4, of=4, becomes="row.version"),
        caught_by=(f"{_REKEY}::test_an_agents_change_that_began_before_does_not_bring_the_old_key_back",),
    ),
    Rule(
        name="rekey-looks-again",
        breaks="A secret that was set during a rekey keeps the old key, and is lost with it.",
        symbol="trunkline.services.security.rekey:Rekeying.run",
        change=Change("condition", 1, of=1, becomes="True"),
        caught_by=(f"{_REKEY}::test_a_change_during_the_rekey_wins_and_is_rekeyed_in_the_next_pass",),
    ),
    Rule(
        name="previous-keys-decrypt",
        breaks="After the first restart with a new key, nothing that was stored before can be read.",
        symbol="trunkline.services.security.vault:Vault.__init__",
        change=Change("iterable", 1, of=1, becomes="(key,)"),
        caught_by=(f"{_VAULT}::test_previous_keys_decrypt_and_the_first_one_encrypts",),
        shows="cannot be decrypted",
    ),
)
