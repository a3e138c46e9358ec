"""Rules of named secrets: where they come from, and where they must never be."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/test_secrets.py"
_PLACES = "tests/unit/bridge/calls/test_task_secrets.py"
_SERVICE = "tests/unit/services/security/test_secrets.py"
_RUNS = "tests/scenarios/test_named_secrets.py"
_HIDDEN = "tests/scenarios/test_named_secrets_hidden.py"
_REPEATS = f"{_HIDDEN}::test_an_agent_that_repeats_a_named_secret_does_not_make_it_readable"

SECRETS: Sequence[Rule] = (
    Rule(
        name="secret-is-never-data",
        breaks="Whoever starts a run, or an agent that answers one, can have any secret sent.",
        file="machine/steps/agent.py",
        old="        task.secrets = plan.secrets\n",
        new=(
            '        task.secrets = __import__("trunkline.workflow.secret_places", fromlist=["x"])'
            ".secret_places(task.input_data)\n"
        ),
        caught_by=(
            f"{_MACHINE}::test_a_call_names_the_secrets_of_the_definition_and_nothing_that_came_as_data",
        ),
    ),
    Rule(
        name="reply-is-data",
        breaks="A person's reply of the right shape has a secret put into it.",
        file="machine/steps/agent.py",
        old="    if step.reply is None:\n        task.secrets = plan.secrets\n",
        new="    task.secrets = plan.secrets\n",
        caught_by=(
            f"{_MACHINE}::test_a_reply_of_the_shape_of_the_input_is_not_filled_in",
            f"{_MACHINE}::test_a_reply_is_data_and_the_secret_that_the_agent_has_is_still_to_be_hidden",
        ),
    ),
    Rule(
        name="secret-at-its-place-alone",
        breaks="A message that names a wrong place has a secret put where nobody wrote one.",
        file="bridge/calls/task_secrets.py",
        old="if value != {SECRET_KEY: name}:",
        new="if value is None:",
        caught_by=(f"{_PLACES}::test_a_place_that_holds_anything_else_is_refused",),
    ),
    Rule(
        name="secret-in-a-copy",
        breaks="The value is in the claim, and goes wherever claims are written.",
        file="bridge/calls/task_secrets.py",
        old="            return {**value, key: _with(value[key], rest, name, secret)}\n",
        new="            value[key] = _with(value[key], rest, name, secret)\n            return value\n",
        caught_by=(f"{_PLACES}::test_a_secret_is_put_into_a_copy_and_the_task_stays_as_it_was",),
    ),
    Rule(
        name="secret-in-no-record",
        breaks="The value is in wire records, logs, outputs and topics.",
        file="bridge/calls/session.py",
        old="replace(resolved, redaction=resolved.redaction.beside(self._secrets.hidden), batch=None)",
        new="replace(resolved, batch=None)",
        caught_by=(
            f"{_REPEATS}[embedded-simple output]",
            f"{_HIDDEN}::test_a_stream_that_repeats_a_named_secret_does_not_make_it_readable[embedded]",
            f"{_RUNS}::test_an_agent_that_is_told_to_stop_cannot_show_the_secret[embedded]",
        ),
    ),
    Rule(
        name="secret-travels-alone",
        breaks="What an agent says to a batch shows the secret of one call in the record of another.",
        file="bridge/calls/session.py",
        old="redaction=resolved.redaction.beside(self._secrets.hidden), batch=None)",
        new="redaction=resolved.redaction.beside(self._secrets.hidden))",
        caught_by=(f"{_RUNS}::test_a_call_with_a_secret_does_not_travel_with_others[embedded]",),
    ),
    Rule(
        name="secret-in-no-line-of-a-program",
        breaks="A program that prints what it got has it in our log.",
        file="bridge/calls/session.py",
        old="SECRETS_SENT.set(secrets.hidden)",
        new="SECRETS_SENT.set(secrets.hidden[:0])",
        caught_by=(
            f"{_RUNS}::test_a_program_that_prints_what_it_got_does_not_bring_it_into_the_log[embedded]",
        ),
    ),
    Rule(
        name="secret-is-there-first",
        breaks="An agent is called with the name of a secret instead of the secret.",
        file="bridge/calls/agent_call.py",
        old="if unknown is not None and not self._is_pollable(claim):",
        new='if unknown is not None and claim.remote_task_id == "":',
        caught_by=(
            f"{_RUNS}::test_without_the_secret_nothing_is_sent_and_a_retry_after_it_is_set_goes_through[embedded]",
        ),
    ),
    Rule(
        name="no-question-without-its-secret",
        breaks="A long task whose secret was removed shows it in its answers.",
        file="bridge/calls/agent_call.py",
        old="if unknown is not None and claim.remote_task_id is not None:",
        new='if unknown is not None and claim.remote_task_id == "":',
        caught_by=(
            f"{_RUNS}::test_a_long_task_is_not_asked_while_what_it_repeats_could_not_be_hidden[embedded]",
        ),
    ),
    Rule(
        name="told-secret-stays-hidden",
        breaks="An agent that repeats in one step what it was told in another makes it readable.",
        file="machine/steps/agent.py",
        old="task.told_secrets = [name for name in plan.told_secrets if name not in sent]",
        new="task.told_secrets = [name for name in plan.told_secrets if name in sent]",
        caught_by=(
            f"{_RUNS}::test_a_reply_is_data_and_what_the_agent_repeats_in_the_conversation_is_hidden[embedded]",
        ),
    ),
    Rule(
        name="value-before-stays-hidden",
        breaks="A task that was called before a secret was changed shows the value that it was given.",
        file="services/security/secrets.py",
        old='"before": before[:1]',
        new='"before": before[:0]',
        caught_by=(f"{_SERVICE}::test_the_value_before_the_last_is_hidden_and_no_older_one",),
    ),
    Rule(
        name="secret-bound-to-its-name",
        breaks="Whoever can write to the database can put one secret in the place of another.",
        file="services/security/secrets.py",
        old='return f"secret:{name}"',
        new='return f"secret:{name[:0]}"',
        caught_by=(f"{_SERVICE}::test_a_secret_is_kept_sealed_and_bound_to_its_name",),
        shows="DID NOT RAISE",
    ),
)
