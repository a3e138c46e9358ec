"""Rules of agents that are programs: which are run, what they get and say, and whose answer is whose."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_PROGRAMS = "tests/scenarios/hostile/test_programs.py"
_LINES = "tests/scenarios/zones/test_lines.py"

PROGRAMS: Sequence[Rule] = (
    Rule(
        name="programs-of-the-settings-alone",
        breaks="Whoever may register agents runs any program on the bridge's machine.",
        file="transports/stdio.py",
        old="place = self._programs.get(name)",
        new="place = self._programs.get(name) or _SupervisedProgram(name, Program((name,)), MAX_ANSWER_BYTES)",
        caught_by=(f"{_PROGRAMS}::test_only_programs_of_the_settings_are_started[embedded-unknown]",),
    ),
    Rule(
        name="a-programs-answers-by-their-ids",
        breaks="A request gets the answer to another one.",
        file="transports/program_process.py",
        old="asked = [question for question in self._requests if question.key == key]",
        new="asked = list(self._requests)",
        caught_by=(
            f"{_PROGRAMS}::test_answers_in_another_order_go_each_to_its_own_request[embedded]",
            "tests/contract/zones/test_zones.py::test_every_transport_carries_the_same_bytes[stdio-concurrent_calls]",
        ),
    ),
    Rule(
        name="a-late-answer-is-its-own-requests",
        breaks="A program's answer to a request that was given up is taken for that to the next one with no id.",
        file="transports/program_process.py",
        old="            return next(iter(self._requests), None)\n",
        new="            return next((each for each in self._requests if each.is_waiting), None)\n",
        caught_by=(f"{_PROGRAMS}::test_a_late_answer_without_an_id_is_nobody_elses[embedded]",),
    ),
    Rule(
        name="one-life-at-a-time",
        breaks="Two processes of one program work on the same data.",
        file="transports/stdio.py",
        old="                await self._child.wait_closed()\n",
        new="                pass\n",
        caught_by=(
            f"{_PROGRAMS}::test_a_program_is_started_again_only_when_its_last_life_is_over[embedded]",
        ),
    ),
    Rule(
        name="a-program-knows-no-secret-of-ours",
        breaks="A program gets our secrets with its environment.",
        file="agents/stdio_programs.py",
        old='return name in _ALWAYS or name.startswith("LC_") or name in self.environment',
        new="return True",
        caught_by=(f"{_PROGRAMS}::test_a_program_gets_no_variable_that_is_not_for_it[embedded]",),
    ),
    Rule(
        name="a-program-gets-no-setting-of-ours",
        breaks="The operator of a program is handed our key by naming it.",
        file="settings.py",
        old="    if ours:\n",
        new="    if not program.command:\n",
        caught_by=("tests/unit/cli/test_program_settings.py::test_our_own_settings_are_for_no_program",),
    ),
    Rule(
        name="a-programs-words-without-secrets",
        breaks="The log has the bot token of a request, because a program has repeated it.",
        file="transports/program_log.py",
        old="        self._redaction.learn(tuple(self._recent))\n",
        new="",
        caught_by=(f"{_PROGRAMS}::test_what_a_program_says_is_logged_without_its_secrets_and_cut[embedded]",),
    ),
    Rule(
        name="only-answers-on-a-zones-output",
        breaks="What a handler prints is taken for an answer.",
        file="zones/lines.py",
        old="    os.dup2(2, 1)\n",
        new="",
        caught_by=(f"{_LINES}::test_only_answers_are_on_the_standard_output[embedded]",),
        shows="Error",
    ),
)
