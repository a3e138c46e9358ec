"""Rules about agents with two sides: who calls which, what a shadow may do, and when the way back is taken."""

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
        name="side-of-the-stamp",
        breaks="A run in flight changes its protocol whenever somebody moves the agent.",
        symbol="trunkline.bridge.agents.routes:AgentRouter.route_of",
        change=Change("assigned value", 1, of=2, becomes="it.value.func.value.latest(it.value.args[0])"),
        caught_by=(f"{_SIDES}::test_a_run_in_flight_stays_where_it_was_through_every_change",),
    ),
    Rule(
        name="unknown-stamp-read-first",
        breaks="A bridge that has not heard of a change calls the old side for runs that another process has sent to"
        " the new one.",
        symbol="trunkline.services.migration.routing_table:RoutingTable.migration_at",
        change=Change("condition", 1, of=2, becomes="False"),
        caught_by=(f"{_ROUTES}::test_a_stamp_from_elsewhere_that_is_not_known_yet_is_read_first",),
    ),
    Rule(
        name="stamp-of-all-events",
        breaks="A run is stamped as before the last event that it was told of.",
        symbol="trunkline.services.migration.routing_table:RoutingTable._read",
        change=Change("argument", 9, of=12, becomes="0"),
        caught_by=(f"{_ROUTES}::test_a_stamp_is_the_last_event_of_any_kind",),
    ),
    Rule(
        name="sides-kept-apart",
        breaks="A run of an earlier trial is sent to where another one leads.",
        symbol="trunkline.bridge.agents.routes:AgentRouter.target",
        change=Change("element", 2, of=2, becomes="b''"),
        caught_by=(f"{_SIDES}::test_two_targets_of_one_agent_are_kept_apart",),
    ),
    Rule(
        name="new-side-at-its-own-address",
        breaks="Calls for the new side go where the old one is to be called instead of its url.",
        symbol="trunkline.bridge.agents.routes:_target_agent",
        change=Change("keyword", 5, of=6, becomes="it.args[0]"),
        caught_by=(
            f"{_SIDES}::test_the_new_side_has_its_own_address_and_protocol_and_the_agents_credentials",
        ),
    ),
    Rule(
        name="no-row-of-before-the-end",
        breaks="When a move is finished, the old side is called for two seconds more.",
        symbol="trunkline.bridge.agents.routes:_is_outdated",
        change=Change("return value", becomes="False"),
        caught_by=(f"{_SIDES}::test_after_the_end_the_row_is_called_but_not_one_of_before_it",),
    ),
    Rule(
        name="shadow-of-repeatable-agents-only",
        breaks="Work is given twice to an agent that must not get it twice.",
        symbol="trunkline.bridge.migration.shadow_calls:_shadow_task",
        change=Drop("operand", 6, of=11),
        caught_by=(f"{_SHADOW}::test_only_what_is_meant_is_asked_twice",),
    ),
    Rule(
        name="no-shadow-of-at-most-once",
        breaks="A step that is marked at_most_once is done twice.",
        symbol="trunkline.bridge.migration.shadow_calls:_shadow_task",
        change=Drop("operand", 8, of=11),
        caught_by=(f"{_SHADOW}::test_only_what_is_meant_is_asked_twice",),
    ),
    Rule(
        name="shadows-bounded",
        breaks="Shadows take the room of the calls that runs wait for.",
        symbol="trunkline.bridge.migration.shadow_calls:ShadowCalls._start",
        change=Change("operand", 2, of=2, becomes="False"),
        caught_by=(f"{_SHADOW}::test_under_load_shadows_are_left_out_and_counted",),
    ),
    Rule(
        name="shadow-after-the-answer",
        breaks="A shadow is asked for an answer that was never written.",
        symbol="trunkline.bridge.migration.shadow_calls:ShadowCalls.rolled_back",
        change=Change("assignment", becomes="it.targets[0].value.committed()"),
        caught_by=(f"{_SHADOW}::test_what_was_not_committed_is_not_asked",),
    ),
    Rule(
        name="shadow-does-not-answer",
        breaks="A run gets the new side's answer though its agent is only shadowed.",
        symbol="trunkline.agents.migration.routing:endpoint_for",
        change=Change("pattern", 1, of=8, becomes="'cut_over' | 'finished' | 'shadow'"),
        caught_by=(
            f"{_TWO_SIDES}::test_a_shadow_that_fails_hurts_nobody[embedded]",
            "tests/unit/agents/migration/test_routing.py::test_the_stage_decides_the_side[shadow-old]",
        ),
    ),
    Rule(
        name="calls-of-this-trial",
        breaks="Failures of runs from before a rollback roll the mended agent back.",
        symbol="trunkline.agents.migration.rollback_rules:after_calls",
        change=Change("if statement", becomes="it.test.left = max(it.test.left, it.test.comparators[0])"),
        caught_by=(
            f"{_WINDOWS}::test_calls_of_an_earlier_trial_do_not_count_and_a_new_trial_begins_afresh",
            f"{_WATCH}::test_runs_of_an_earlier_trial_do_not_count_in_the_next_one",
        ),
    ),
    Rule(
        name="way-back-once",
        breaks="Every bridge that judges alike rolls the agent back.",
        symbol="trunkline.bridge.migration.rollback:RollbackWatch._try_rollback",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_WATCH}::test_of_two_bridges_that_judge_alike_one_rolls_back",),
    ),
    Rule(
        name="way-back-at-the-next-start",
        breaks="A bridge that dies between noting a failure and the way back leaves a bad side in use.",
        symbol="trunkline.bridge.migration.rollback:RollbackWatch.begin",
        change=Change("iterable", 1, of=2, becomes="()"),
        caught_by=(f"{_WATCH}::test_what_a_dead_bridge_has_noted_is_followed_at_the_next_start",),
    ),
)
