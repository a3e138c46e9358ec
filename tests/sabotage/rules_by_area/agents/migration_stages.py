"""Rules of agents that move: nothing is cut over unready, nobody is overwritten, and no secret goes astray."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_SERVICE = "tests/unit/services/migration/test_migrations.py"
_STORE = "tests/contract/stores/test_agent_events.py"
_REST = "tests/scenarios/api/test_migration.py"

MIGRATION_STAGES: Sequence[Rule] = (
    Rule(
        name="agent-events-one-after-the-other",
        breaks="A change with a smaller number appears after a greater one was seen: some bridges never hear of it.",
        symbol="trunkline.stores.postgres.tables.agent_events:PostgresAgentEventWrites.lock",
        change=Drop("call statement"),
        caught_by=(f"{_STORE}::test_no_smaller_number_appears_after_a_greater_one_was_seen",),
    ),
    Rule(
        name="agent-sides-counted-together",
        breaks="Two bridges that note calls at the same time forget each other's, and a bad side is not found out.",
        symbol="trunkline.stores.postgres.tables.agent_events:_LOCK_SIDES",
        change=ReplaceText("side FOR UPDATE", "side"),
        caught_by=(f"{_STORE}::test_two_bridges_count_the_calls_of_a_side_one_after_the_other",),
    ),
    Rule(
        name="move-keeps-secrets-at-home",
        breaks="Whoever may move an agent has its credentials sent to a place of their own.",
        symbol="trunkline.services.migration.targets:_check",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=(
            f"{_SERVICE}::test_credentials_go_to_another_origin_only_where_that_is_allowed[not allowed]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="shadow-only-what-may-be-repeated",
        breaks="An agent that must not do the same work twice is made to.",
        symbol="trunkline.services.migration.migrations:Migrations.shadow.decide",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_SERVICE}::test_only_an_agent_that_may_be_called_twice_is_shadowed",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-refused-while-unready",
        breaks="All runs are sent to a side that nobody has found to be ready.",
        symbol="trunkline.services.migration.readiness:refuse_unready",
        change=Change("condition", 2, of=4, becomes="True"),
        caught_by=(f"{_SERVICE}::test_all_agents_are_cut_over_or_none",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-believes-its-own-check",
        breaks="A side that fails its check at this moment is cut over to.",
        symbol="trunkline.services.migration.readiness:CutoverReadiness._checked",
        change=Change("keyword", 3, of=4, becomes="True"),
        caught_by=(f"{_SERVICE}::test_the_new_side_is_checked_at_the_cutover_itself",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-forced-with-a-reason",
        breaks="A refusal is overruled, and nobody knows why afterwards.",
        symbol="trunkline.services.migration.migrations:Migrations._cut_over",
        change=Change("condition", 1, of=4, becomes="False"),
        caught_by=(f"{_SERVICE}::test_a_refusal_is_overruled_only_with_a_reason",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="finish-after-the-last-old-run",
        breaks="The old side is given up under runs that have begun with it: they change protocol in the middle.",
        symbol="trunkline.services.migration.migrations:Migrations._refuse_while_old_runs_go_on",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_SERVICE}::test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="finish-when-all-know-of-the-cutover",
        breaks="A process that has not heard of the cutover accepts a run for a side that is given up.",
        symbol="trunkline.services.migration.migrations:Migrations._refuse_while_old_runs_go_on",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(f"{_SERVICE}::test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more",),
        shows="Regex pattern did not match",
    ),
    Rule(
        name="finished-row-is-told-by-its-version",
        breaks="A bridge that has read the agent before calls the old side in a run of after the end.",
        symbol="trunkline.agents.migration.transitions:finished",
        change=Drop("keyword", 3, of=3),
        caught_by=(f"{_SERVICE}::test_an_agent_moves_stage_by_stage_and_all_of_it_is_written_down",),
    ),
    Rule(
        name="rollback-of-what-was-judged",
        breaks="A rollback that comes late ends a trial that somebody has begun meanwhile.",
        symbol="trunkline.services.migration.migrations:Migrations.roll_back_if",
        change=Drop("operand", 2, of=4),
        caught_by=(f"{_SERVICE}::test_a_rollback_by_itself_ends_only_the_trial_that_it_has_judged",),
    ),
    Rule(
        name="rollback-withdraws-the-attestation",
        breaks="What somebody has rolled back is cut over again with all others, though nobody has mended it.",
        symbol="trunkline.agents.migration.transitions:rolled_back",
        change=Drop("keyword", 5, of=5),
        caught_by=(f"{_SERVICE}::test_what_was_rolled_back_has_to_be_attested_again",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="moving-agent-stays-what-it-is",
        breaks="The address of an agent with two sides is changed under its runs, which change partners in the middle.",
        symbol="trunkline.services.agents.registry:AgentRegistry._update",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(f"{_SERVICE}::test_what_a_moving_agent_is_stays_as_it_is_until_the_move_has_ended",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="run-stamped-when-accepted",
        breaks="Runs never hear of a cutover, and go on calling the old side.",
        symbol="trunkline.services.runs.runs:Runs._start",
        change=Change("keyword", 12, of=19, becomes="0"),
        caught_by=(f"{_REST}::test_a_cutover_outlives_the_process_that_was_asked_for_it[embedded]",),
    ),
    Rule(
        name="audit-by-the-key",
        breaks="Whoever has a key changes a migration in somebody else's name.",
        symbol="trunkline.api.routes.migration:MigrationRoutes._asked",
        change=Change("argument", 6, of=8, becomes="it.values[1] or it.values[0]"),
        caught_by=(f"{_REST}::test_who_has_a_key_is_known_by_its_name[embedded]",),
    ),
)
