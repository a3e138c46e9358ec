"""Rules of a zone's work: each call runs once, none is forgotten, and acceptance is durable."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_WORK = "tests/unit/zones/test_call_runner.py"
_RESTARTS = "tests/unit/zones/test_call_runner_restarts.py"
_KILLS = "tests/crash/test_zone_kills.py"
_FILE = "tests/contract/test_zone_file.py"

ZONE_WORK: Sequence[Rule] = (
    Rule(
        name="zone-call-written-before-it-runs",
        breaks="A zone that dies during a call does not know about it, and runs it again when the request is repeated.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner._begin",
        change=Change("assigned value", 2, of=2, becomes="None"),
        caught_by=(
            f"{_WORK}::test_a_call_is_written_down_before_its_handler_runs",
            f"{_KILLS}::test_a_call_whose_zone_is_killed_has_an_end_and_did_not_run_twice[in the handler-once]",
        ),
    ),
    Rule(
        name="zone-call-runs-once",
        breaks="A caller that got no answer and repeats its request has the work done twice.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner._begin",
        change=Change("condition", 3, of=4, becomes="it or it.left.status == 'finished'"),
        caught_by=(
            f"{_WORK}::test_the_same_call_again_gets_the_same_answer_and_runs_nothing",
            f"{_KILLS}::test_a_call_whose_zone_is_killed_has_an_end_and_did_not_run_twice[after finish-once]",
        ),
    ),
    Rule(
        name="zone-call-joined-while-it-runs",
        breaks='A request that is repeated while its work is running is answered with "interrupted".',
        symbol="trunkline.zones.call_runner:ZoneCallRunner.run",
        change=Change("assigned value", 1, of=3, becomes="None"),
        caught_by=(
            f"{_WORK}::test_the_same_call_twice_at_once_runs_once_and_both_get_its_answer",
            f"{_WORK}::test_a_caller_that_goes_away_does_not_end_the_work",
        ),
    ),
    Rule(
        name="zone-id-of-other-params-running",
        breaks="A request with an id that is in use gets the answer to another request.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner.run",
        change=Change("condition", 3, of=4, becomes="False"),
        caught_by=(f"{_WORK}::test_an_id_is_refused_for_other_params_while_it_runs",),
    ),
    Rule(
        name="zone-id-of-other-params-ended",
        breaks="A request with an id that was used before gets the answer to another request.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner._begin",
        change=Change("condition", 4, of=4, becomes="False"),
        caught_by=(
            f"{_WORK}::test_an_id_is_refused_for_other_params_after_it_has_ended",
            f"{_RESTARTS}::test_a_call_that_died_before_its_first_answer_is_known_by_its_id",
        ),
    ),
    Rule(
        name="zone-interrupted-work-is-resumed",
        breaks="Work that was accepted before a crash stays accepted forever and never ends.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner.resume_calls",
        change=Change("iterable", becomes="it[:0]"),
        caught_by=(
            f"{_RESTARTS}::test_work_that_died_with_the_zone_is_reported_as_failed_and_not_run_again",
            f"{_RESTARTS}::test_restartable_work_is_run_again_with_its_params_and_finishes[False]",
        ),
    ),
    Rule(
        name="zone-call-that-crashes-is-abandoned",
        breaks="A call that crashes its zone crashes it again after each restart, forever.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner._restartable_job",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_RESTARTS}::test_work_that_is_under_way_at_every_death_is_given_up_in_the_end",),
    ),
    Rule(
        name="zone-cancelled-work-has-no-result",
        breaks="The value that a handler returns because the zone is stopping counts as its result.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner._end",
        change=Drop("operand", 2, of=4),
        caught_by=(f"{_RESTARTS}::test_what_a_handler_returns_to_a_stop_is_not_the_end_of_restartable_work",),
    ),
    Rule(
        name="zone-accepted-on-the-disk",
        breaks="Accepted work is lost in a power failure.",
        symbol="trunkline.stores.zones.file:ZoneFile.accept",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_FILE}::test_what_is_accepted_is_in_a_log_that_was_synced",),
    ),
    Rule(
        name="zone-accepts-nothing-without-the-disk",
        breaks="A zone whose disk fails accepts work that it may lose.",
        symbol="trunkline.zones.call_runner:ZoneCallRunner._wait_for_first_answer",
        change=Drop("if statement", 3, of=3),
        caught_by=(f"{_RESTARTS}::test_nothing_is_accepted_that_is_not_on_the_disk",),
    ),
    Rule(
        name="zone-ends-with-a-stuck-thread",
        breaks="A handler that never returns prevents a zone from stopping.",
        symbol="trunkline.zones.thread_pool:DaemonThreadPool.submit",
        change=Change("keyword", 5, of=5, becomes="False"),
        caught_by=(
            "tests/unit/zones/test_thread_pool.py::test_a_call_that_never_ends_does_not_keep_the_process",
        ),
        shows="TimeoutExpired",
    ),
)
