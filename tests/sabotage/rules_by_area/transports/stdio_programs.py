"""Rules of agents that are local programs: which programs run, what they receive, and matching their answers."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_PROGRAMS = "tests/scenarios/hostile/test_programs.py"
_LINES = "tests/scenarios/zones/test_stdio.py"

STDIO_PROGRAMS: Sequence[Rule] = (
    Rule(
        name="only-programs-of-the-settings",
        breaks="A client that may register agents runs any program on the bridge's machine.",
        symbol="trunkline.transports.stdio:StdioTransport._program",
        change=Change(
            "assigned value",
            2,
            of=2,
            becomes="it or _SupervisedProgram(it.args[0], StdioProgram((it.args[0],)), MAX_ANSWER_BYTES)",
        ),
        caught_by=(f"{_PROGRAMS}::test_only_programs_of_the_settings_are_started[embedded-unknown]",),
    ),
    Rule(
        name="program-answers-by-their-ids",
        breaks="A request gets the answer to another one.",
        symbol="trunkline.transports.program_process:ChildProcess._request_for",
        change=Change("assigned value", becomes="list(it.generators[0].iter)"),
        caught_by=(
            f"{_PROGRAMS}::test_answers_in_another_order_go_each_to_its_own_request[embedded]",
            "tests/contract/zones/test_zones.py::test_every_transport_carries_the_same_bytes[stdio-concurrent_calls]",
        ),
    ),
    Rule(
        name="late-program-answer-is-discarded",
        breaks="A program's answer to an abandoned request counts as the answer to the next request without an id.",
        symbol="trunkline.transports.program_process:ChildProcess._request_for",
        change=Change("argument", 1, of=8, becomes="(each for each in it.args[0] if each.is_waiting)"),
        caught_by=(
            f"{_PROGRAMS}::test_a_late_answer_without_an_id_is_not_given_to_another_request[embedded]",
        ),
    ),
    Rule(
        name="one-process-per-program",
        breaks="Two processes of one program work on the same data.",
        symbol="trunkline.transports.stdio:_SupervisedProgram._restart",
        change=Drop("call statement", 1, of=2),
        caught_by=(
            f"{_PROGRAMS}::test_a_program_is_started_again_only_when_its_last_life_is_over[embedded]",
        ),
    ),
    Rule(
        name="program-gets-no-secret-of-trunkline",
        breaks="A program receives Trunkline's secrets in its environment.",
        symbol="trunkline.agents.stdio_programs:StdioProgram._gets",
        change=Change("return value", 2, of=2, becomes="True"),
        caught_by=(f"{_PROGRAMS}::test_a_program_gets_no_variable_that_is_not_for_it[embedded]",),
    ),
    Rule(
        name="program-gets-no-setting-of-trunkline",
        breaks="A program's configuration can name Trunkline's own key and receive it.",
        symbol="trunkline.settings:_check_program",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=("tests/unit/cli/test_program_settings.py::test_our_own_settings_are_for_no_program",),
    ),
    Rule(
        name="program-log-without-secrets",
        breaks="The log contains the bot token of a request because a program repeated it.",
        symbol="trunkline.transports.program_log:ProgramLog._shown",
        change=Drop("call statement"),
        caught_by=(f"{_PROGRAMS}::test_what_a_program_says_is_logged_without_its_secrets_and_cut[embedded]",),
    ),
    Rule(
        name="only-answers-on-zone-output",
        breaks="Output that a handler prints is read as an answer.",
        symbol="trunkline.zones.serving.stdio:take_pipes",
        change=Drop("call statement", 4, of=4),
        caught_by=(f"{_LINES}::test_only_answers_are_on_the_standard_output[embedded]",),
        shows="Error",
    ),
)
