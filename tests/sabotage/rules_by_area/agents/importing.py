"""Rules of importing other systems' definitions: nothing is dropped silently, and no secret is imported."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_WORKFLOWS = "tests/unit/importing/litecone/test_workflows.py"
_LOSSES = "tests/unit/importing/litecone/test_import_reports.py"
_AGENTS = "tests/unit/importing/litecone/test_agents.py"

IMPORTING: Sequence[Rule] = (
    Rule(
        name="unknown-condition-fails-the-run",
        breaks="A condition that the import did not understand is treated as true.",
        symbol="trunkline.importing.litecone.step_conditions:StepConditions.condition",
        change=Change("assigned value", 3, of=4, becomes="'true'"),
        caught_by=(
            f"{_LOSSES}::test_a_condition_that_is_not_understood_lets_the_run_fail_there_and_not_go_on",
        ),
    ),
    Rule(
        name="unknown-field-is-reported",
        breaks="A field that the import does not know disappears without a warning.",
        symbol="trunkline.importing.litecone.source_fields:SourceFields.finish",
        change=Change("operand", 2, of=2, becomes="it.left is None"),
        caught_by=(f"{_AGENTS}::test_what_is_not_converted_is_reported[agent4-capabilities]",),
    ),
    Rule(
        name="imported-text-names-no-secret",
        breaks="Plain data in an imported workflow sends one of our secrets to an agent.",
        symbol="trunkline.importing.litecone.references:ReferenceTranslator.value",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_LOSSES}::test_data_that_would_name_one_of_our_secrets_does_not_become_its_name",),
    ),
    Rule(
        name="secrets-of-imported-agents",
        breaks="An imported agent's secret in an unexpected place is printed.",
        symbol="trunkline.importing.litecone.agents:_auth",
        change=Drop("keyword"),
        caught_by=(f"{_AGENTS}::test_a_secret_in_the_wrong_place_is_not_repeated_either[agent0]",),
    ),
    Rule(
        name="tokens-in-imported-addresses",
        breaks="A token in the query string of an imported agent's URL is written to a file.",
        symbol="trunkline.importing.litecone.agents:_without_secrets",
        change=Change("return value", 2, of=2, becomes="url"),
        caught_by=(f"{_AGENTS}::test_an_address_keeps_all_but_its_secrets",),
    ),
    Rule(
        name="imported-branch-may-fail",
        breaks="A branch that an imported workflow reads but does not need fails the run.",
        symbol="trunkline.importing.litecone.workflow_builder:WorkflowBuilder.steps",
        change=Change("iterable", 2, of=3, becomes="()"),
        caught_by=(f"{_WORKFLOWS}::test_a_branch_that_others_read_than_the_join_may_fail_and_ends_there",),
    ),
)
