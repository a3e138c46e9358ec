"""Rules of agents that move: nothing is cut over unready, nobody is overwritten, and no secret goes astray."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_SERVICE = "tests/unit/services/migration/test_migrations.py"
_STORE = "tests/contract/test_store_agent_records.py"
_REST = "tests/scenarios/api/test_migration.py"

MIGRATION: Sequence[Rule] = (
    Rule(
        name="agent-events-one-after-the-other",
        breaks="A change with a smaller number appears after a greater one was seen: some bridges never hear of it.",
        file="stores/postgres/tables/agent_events.py",
        old="    await db.command(_LOCK)\n",
        new="    del db\n",
        caught_by=(f"{_STORE}::test_no_smaller_number_appears_after_a_greater_one_was_seen",),
    ),
    Rule(
        name="agent-sides-counted-together",
        breaks="Two bridges that note calls at the same time forget each other's, and a bad side is not found out.",
        file="stores/postgres/tables/agent_events.py",
        old="    ORDER BY agent_id, side FOR UPDATE\n",
        new="    ORDER BY agent_id, side\n",
        caught_by=(f"{_STORE}::test_two_bridges_count_the_calls_of_a_side_one_after_the_other",),
    ),
    Rule(
        name="move-keeps-secrets-at-home",
        breaks="Whoever may move an agent has its credentials sent to a place of their own.",
        file="services/migration/targets.py",
        old="if agent.secret is not None and not may_get_secret(agent, target.url):",
        new="if False:",
        caught_by=(
            f"{_SERVICE}::test_credentials_go_to_another_origin_only_where_that_is_allowed[not allowed]",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="shadow-only-what-may-be-repeated",
        breaks="An agent that must not do the same work twice is made to.",
        file="services/migration/migrations.py",
        old="if not migration.agent.options.repeatable:",
        new="if False:",
        caught_by=(f"{_SERVICE}::test_only_an_agent_that_may_be_called_twice_is_shadowed",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-refused-while-unready",
        breaks="All runs are sent to a side that nobody has found to be ready.",
        file="services/migration/migrations.py",
        old="        if not findings:\n            return\n        unready",
        new="        return\n        unready",
        caught_by=(f"{_SERVICE}::test_all_agents_are_cut_over_or_none",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-believes-its-own-check",
        breaks="A side that fails its check at this moment is cut over to.",
        file="services/migration/migrations.py",
        old="return TargetCheck(passed=report.passed, summary=summary_of(report))",
        new="return TargetCheck(passed=True, summary=summary_of(report))",
        caught_by=(f"{_SERVICE}::test_the_new_side_is_checked_at_the_cutover_itself",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="cutover-forced-with-a-reason",
        breaks="A refusal is overruled, and nobody knows why afterwards.",
        file="services/migration/migrations.py",
        old="if force and not reason.why.strip():",
        new="if False:",
        caught_by=(f"{_SERVICE}::test_a_refusal_is_overruled_only_with_a_reason",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="finish-after-the-last-old-run",
        breaks="The old side is given up under runs that have begun with it: they change protocol in the middle.",
        file="services/migration/migrations.py",
        old="        if older:\n",
        new="        if False:\n",
        caught_by=(f"{_SERVICE}::test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="finish-when-all-know-of-the-cutover",
        breaks="A process that has not heard of the cutover accepts a run for a side that is given up.",
        file="services/migration/migrations.py",
        old="if event.id == state.cut_over_at and age < _KNOWN_BY_ALL.total_seconds():",
        new="if False:",
        caught_by=(f"{_SERVICE}::test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more",),
        shows="Regex pattern did not match",
    ),
    Rule(
        name="finished-row-is-told-by-its-version",
        breaks="A bridge that has read the agent before calls the old side in a run of after the end.",
        file="agents/migration/transitions.py",
        old='stage="finished", percent=100, row_version=row_version',
        new='stage="finished", percent=100',
        caught_by=(f"{_SERVICE}::test_an_agent_moves_stage_by_stage_and_all_of_it_is_written_down",),
    ),
    Rule(
        name="rollback-of-what-was-judged",
        breaks="A rollback that comes late ends a trial that somebody has begun meanwhile.",
        file="services/migration/migrations.py",
        old="                or migration.event.id != only_if\n",
        new="",
        caught_by=(f"{_SERVICE}::test_a_rollback_by_itself_ends_only_the_trial_that_it_has_judged",),
    ),
    Rule(
        name="rollback-withdraws-the-attestation",
        breaks="What somebody has rolled back is cut over again with all others, though nobody has mended it.",
        file="agents/migration/transitions.py",
        old="cut_over_at=0, forced=False, ready=None)",
        new="cut_over_at=0, forced=False)",
        caught_by=(f"{_SERVICE}::test_what_was_rolled_back_has_to_be_attested_again",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="moving-agent-stays-what-it-is",
        breaks="The address of an agent with two sides is changed under its runs, which change partners in the middle.",
        file="services/agents/registry.py",
        old="if _affects_migration(agent, unsaved):",
        new="if False:",
        caught_by=(f"{_SERVICE}::test_what_a_moving_agent_is_stays_as_it_is_until_the_move_has_ended",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="run-stamped-when-accepted",
        breaks="Runs never hear of a cutover, and go on calling the old side.",
        file="services/runs/runs.py",
        old="routing_version=await self._routing.current_version(),",
        new="routing_version=0,",
        caught_by=(f"{_REST}::test_a_cutover_outlives_the_process_that_was_asked_for_it[embedded]",),
    ),
    Rule(
        name="audit-by-the-key",
        breaks="Whoever has a key changes a migration in somebody else's name.",
        file="api/routes/migration.py",
        old="caller_of(request.scope) or asked.who",
        new="asked.who or caller_of(request.scope)",
        caught_by=(f"{_REST}::test_who_has_a_key_is_known_by_its_name[embedded]",),
    ),
)
