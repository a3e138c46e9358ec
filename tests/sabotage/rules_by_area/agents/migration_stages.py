"""Rules of migration stages: no cutover to an unready target, no lost update, no leaked secret."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_SERVICE = "tests/unit/services/migration/test_migrations.py"
_ENDING = "tests/unit/services/migration/test_ending_migrations.py"
_STORE = "tests/contract/stores/test_agent_events.py"
_REST = "tests/scenarios/api/test_migration.py"

MIGRATION_STAGES: Sequence[Rule] = (
    Rule(
        name="agent-events-in-order",
        breaks="An event with a smaller number appears after a greater one was read, and some bridges miss it.",
        symbol="trunkline.stores.postgres.tables.agents.agent_events:PostgresAgentEventWrites.lock",
        change=Drop("call statement"),
        caught_by=(f"{_STORE}::test_no_smaller_number_appears_after_a_greater_one_was_seen",),
    ),
    Rule(
        name="agent-routes-counted-together",
        breaks="Two bridges that record calls at the same time overwrite each other's counts, and a failing target "
        "is not detected.",
        symbol="trunkline.stores.postgres.tables.agents.agent_events:_LOCK_SIDES",
        change=ReplaceText("side FOR UPDATE", "side"),
        caught_by=(f"{_STORE}::test_two_bridges_count_the_calls_of_a_side_one_after_the_other",),
    ),
    Rule(
        name="migration-keeps-secrets-at-their-origin",
        breaks="A client that may migrate an agent can have its credentials sent to another host.",
        symbol="trunkline.services.migration.targets:_check",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=(
            f"{_SERVICE}::test_credentials_go_to_another_origin_only_where_that_is_allowed[not allowed]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="migrated-agent-gets-the-whole-input",
        breaks="An agent that parses its input as JSON gets only a text of it, loses the rest, and still answers.",
        symbol="trunkline.services.migration.targets:_with_input_mode",
        change=Change("condition", 1, of=2, becomes="True"),
        caught_by=(f"{_SERVICE}::test_the_target_of_an_agent_that_got_the_whole_input_gets_it_too[nothing]",),
    ),
    Rule(
        name="rollback-refused-to-a-dead-source",
        breaks="New runs are sent to a source that no longer answers in its protocol, and all of them fail.",
        symbol="trunkline.services.migration.readiness:refuse_unusable",
        change=Change("condition", 1, of=2, becomes="True"),
        caught_by=(f"{_ENDING}::test_a_rollback_to_a_source_that_cannot_be_called_is_refused",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="shadow-only-what-may-be-repeated",
        breaks="An agent that must not do the same work twice gets it twice.",
        symbol="trunkline.services.migration.migrations:Migrations.shadow.decide",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_SERVICE}::test_only_an_agent_that_may_be_called_twice_is_shadowed",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-refused-while-unready",
        breaks="All runs are sent to a target that was never found to be ready.",
        symbol="trunkline.services.migration.readiness:refuse_unready",
        change=Change("condition", 2, of=4, becomes="True"),
        caught_by=(f"{_SERVICE}::test_all_agents_are_cut_over_or_none",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-believes-its-own-check",
        breaks="Trunkline cuts over to a target that fails its check at that moment.",
        symbol="trunkline.services.migration.readiness:CutoverReadiness._checked",
        change=Change("keyword", 3, of=4, becomes="True"),
        caught_by=(f"{_SERVICE}::test_the_new_side_is_checked_at_the_cutover_itself",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-forced-with-a-reason",
        breaks="A refusal is overridden, and the reason is not recorded.",
        symbol="trunkline.services.migration.migrations:Migrations._cut_over",
        change=Change("condition", 1, of=4, becomes="False"),
        caught_by=(f"{_SERVICE}::test_a_refusal_is_overruled_only_with_a_reason",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="finish-after-the-last-old-run",
        breaks="The source is removed while runs still use it: they change protocol half-way.",
        symbol="trunkline.services.migration.migrations:Migrations._refuse_while_old_runs_go_on",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_ENDING}::test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="finish-when-all-processes-know-the-cutover",
        breaks="A process that has not read the cutover accepts a run for a source that is being removed.",
        symbol="trunkline.services.migration.migrations:Migrations._refuse_while_old_runs_go_on",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(f"{_ENDING}::test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more",),
        shows="Regex pattern did not match",
    ),
    Rule(
        name="finished-row-has-a-new-version",
        breaks="A bridge with a cached agent calls the source for a run that started after the migration finished.",
        symbol="trunkline.agents.migration.transitions:finished",
        change=Drop("keyword", 3, of=3),
        caught_by=(f"{_SERVICE}::test_an_agent_moves_stage_by_stage_and_all_of_it_is_written_down",),
    ),
    Rule(
        name="rollback-of-what-was-judged",
        breaks="A late rollback ends a canary that was started in the meantime.",
        symbol="trunkline.services.migration.migrations:Migrations.roll_back_if",
        change=Drop("operand", 2, of=4),
        caught_by=(f"{_ENDING}::test_a_rollback_by_itself_ends_only_the_trial_that_it_has_judged",),
    ),
    Rule(
        name="rollback-withdraws-the-attestation",
        breaks="A rolled-back agent is cut over again by a bulk cutover although it was not fixed.",
        symbol="trunkline.agents.migration.transitions:rolled_back",
        change=Drop("keyword", 5, of=5),
        caught_by=(f"{_ENDING}::test_what_was_rolled_back_has_to_be_attested_again",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="migrating-agent-cannot-change",
        breaks="The URL of a migrating agent changes while runs use it, and their calls go to another agent half-way.",
        symbol="trunkline.services.agents.registry:AgentRegistry._update",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_SERVICE}::test_what_a_moving_agent_is_stays_as_it_is_until_the_move_has_ended",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="run-gets-its-routing-version",
        breaks="Runs ignore a cutover and keep calling the source.",
        symbol="trunkline.services.runs.runs:Runs._start",
        change=Change("keyword", 12, of=23, becomes="0"),
        caught_by=(f"{_REST}::test_a_cutover_outlives_the_process_that_was_asked_for_it[embedded]",),
    ),
    Rule(
        name="audit-by-the-key",
        breaks="A client with an API key changes a migration in another person's name.",
        symbol="trunkline.api.routes.agents.migration:MigrationRoutes._asked",
        change=Change("argument", 6, of=8, becomes="it.values[1] or it.values[0]"),
        caught_by=(f"{_REST}::test_who_has_a_key_is_known_by_its_name[embedded]",),
    ),
)
