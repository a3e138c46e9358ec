"""Rules of routing during a migration: which run calls which endpoint, shadow calls, automatic rollback."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_TWO_SIDES = "tests/scenarios/test_migration_routes.py"
_SIDES = "tests/unit/bridge/agents/test_routes.py"
_SHADOW = "tests/unit/bridge/migration/test_shadow_calls.py"
_WATCH = "tests/unit/bridge/migration/test_rollback.py"
_WINDOWS = "tests/unit/agents/migration/test_rollback_rules.py"
_ROUTES = "tests/unit/services/migration/test_routing_table.py"

MIGRATION_ROUTING: Sequence[Rule] = (
    Rule(
        name="route-of-the-routing-version",
        breaks="A run in progress changes protocol whenever the agent is migrated.",
        symbol="trunkline.bridge.agents.routes:AgentRouter.route_of",
        change=Change("assigned value", 1, of=2, becomes="it.value.func.value.latest(it.value.args[0])"),
        caught_by=(f"{_SIDES}::test_a_run_in_flight_stays_where_it_was_through_every_change",),
    ),
    Rule(
        name="unknown-routing-version-read-first",
        breaks="A bridge that has not read a change calls the source for runs that another process has routed to "
        "the target.",
        symbol="trunkline.services.migration.routing_table:RoutingTable.migration_at",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(f"{_ROUTES}::test_a_stamp_from_elsewhere_that_is_not_known_yet_is_read_first",),
    ),
    Rule(
        name="routing-version-of-all-events",
        breaks="A run gets an older routing version than the last event that its process has read.",
        symbol="trunkline.services.migration.routing_table:RoutingTable._read",
        change=Change("argument", 9, of=12, becomes="0"),
        caught_by=(f"{_ROUTES}::test_a_stamp_is_the_last_event_of_any_kind",),
    ),
    Rule(
        name="targets-kept-apart",
        breaks="A run of an earlier migration is sent to the target of a later one.",
        symbol="trunkline.bridge.agents.routes:AgentRouter.target",
        change=Change("element", 2, of=2, becomes="b''"),
        caught_by=(f"{_SIDES}::test_two_targets_of_one_agent_are_kept_apart",),
    ),
    Rule(
        name="target-at-its-own-address",
        breaks="Calls to the target go to the address that overrides the URL of the source.",
        symbol="trunkline.bridge.agents.routes:_target_agent",
        change=Change("keyword", 5, of=6, becomes="it.args[0]"),
        caught_by=(
            f"{_SIDES}::test_the_new_side_has_its_own_address_and_protocol_and_the_agents_credentials",
        ),
    ),
    Rule(
        name="no-row-from-before-the-finish",
        breaks="After a migration finishes, the source is called for two more seconds.",
        symbol="trunkline.bridge.agents.routes:_is_outdated",
        change=Change("return value", becomes="False"),
        caught_by=(f"{_SIDES}::test_after_the_end_the_row_is_called_but_not_one_of_before_it",),
    ),
    Rule(
        name="shadow-of-repeatable-agents-only",
        breaks="An agent that must not get the same work twice gets it twice.",
        symbol="trunkline.bridge.migration.shadow_calls:_shadow_task",
        change=Drop("operand", 6, of=11),
        caught_by=(f"{_SHADOW}::test_only_what_is_meant_is_asked_twice",),
    ),
    Rule(
        name="no-shadow-of-at-most-once",
        breaks="A step that is marked at_most_once is carried out twice.",
        symbol="trunkline.bridge.migration.shadow_calls:_shadow_task",
        change=Drop("operand", 8, of=11),
        caught_by=(f"{_SHADOW}::test_only_what_is_meant_is_asked_twice",),
    ),
    Rule(
        name="shadow-calls-bounded",
        breaks="Shadow calls displace the calls that runs wait for.",
        symbol="trunkline.bridge.migration.shadow_calls:ShadowCalls._start",
        change=Change("operand", 2, of=2, becomes="False"),
        caught_by=(f"{_SHADOW}::test_under_load_shadows_are_left_out_and_counted",),
    ),
    Rule(
        name="shadow-after-the-answer",
        breaks="A shadow call is made for an answer that was never written.",
        symbol="trunkline.bridge.migration.shadow_calls:ShadowCalls.rolled_back",
        change=Change("assignment", becomes="it.targets[0].value.committed()"),
        caught_by=(f"{_SHADOW}::test_what_was_not_committed_is_not_asked",),
    ),
    Rule(
        name="shadow-does-not-answer",
        breaks="A run gets the answer of the target although its agent is only shadowed.",
        symbol="trunkline.agents.migration.routing:endpoint_for",
        change=Change("pattern", 1, of=8, becomes="'cut_over' | 'finished' | 'shadow'"),
        caught_by=(
            f"{_TWO_SIDES}::test_a_failing_shadow_call_affects_no_run[embedded]",
            "tests/unit/agents/migration/test_routing.py::test_the_stage_decides_whether_source_or_target_answers[shadow-old]",
        ),
    ),
    Rule(
        name="calls-of-this-canary",
        breaks="Failures of runs from before a rollback roll back the fixed agent.",
        symbol="trunkline.agents.migration.rollback_rules:after_calls",
        change=Change("if statement", becomes="it.test.left = max(it.test.left, it.test.comparators[0])"),
        caught_by=(
            f"{_WINDOWS}::test_calls_of_an_earlier_trial_do_not_count_and_a_new_trial_begins_afresh",
            f"{_WATCH}::test_runs_of_an_earlier_trial_do_not_count_in_the_next_one",
        ),
    ),
    Rule(
        name="rollback-once",
        breaks="Every bridge that comes to the same decision rolls the agent back.",
        symbol="trunkline.bridge.migration.rollback:RollbackWatch._try_rollback",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_WATCH}::test_of_two_bridges_that_judge_alike_one_rolls_back",),
    ),
    Rule(
        name="rollback-at-the-next-start",
        breaks="A bridge that dies between recording a failure and the rollback leaves a failing target in use.",
        symbol="trunkline.bridge.migration.rollback:RollbackWatch.begin",
        change=Change("iterable", 1, of=2, becomes="()"),
        caught_by=(f"{_WATCH}::test_what_a_dead_bridge_has_noted_is_followed_at_the_next_start",),
    ),
)
