"""
Removes each safety rule in a copy of the tree, and checks that its tests fail: `make sabotage`.

    python -m tests.sabotage [--only NAME] [--jobs N]
    python -m tests.sabotage --show NAME

The copy includes uncommitted changes. First all tests must pass in the unchanged copy. The exit code is 1 if a rule
can be removed without a failing test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from difflib import unified_diff
from queue import SimpleQueue
from time import monotonic
from typing import NamedTuple

from tests.sabotage.all_rules import RULES
from tests.sabotage.rule import Rule
from tests.sabotage.tree_copy import ROOT, TestReport, TreeCopy, copies

_CAUGHT = "caught"


class Finding(NamedTuple):
    rule: Rule
    # `caught`, or why not.
    outcome: str
    seconds: float


def _why_not_sound(trial: TestReport, tests: Sequence[str]) -> str | None:
    """Why the unchanged copy cannot serve as the baseline."""
    if trial.problem:
        return trial.problem
    for test in tests:
        verdicts = trial.of(test)
        if not verdicts:
            return f"{test} did not run"
        for verdict in verdicts:
            if verdict.outcome != "passed":
                return f"{verdict.test} {verdict.outcome}: {verdict.words[-1000:]}"
    return None


def _outcome(rule: Rule, trial: TestReport) -> str:
    if trial.problem:
        return trial.problem
    for test in rule.caught_by:
        failures = [each for each in trial.of(test) if each.outcome == "failed" and each.phase == "call"]
        if not failures:
            return f"{test} passes without the rule"
        if not any(rule.shows in each.words for each in failures):
            return f"{test} fails for another reason: {failures[0].words[-500:]}"
    return _CAUGHT if trial.failed_as_tests_do else f"pytest ended with {trial.exit_code}"


def _try(rule: Rule, free: SimpleQueue[TreeCopy]) -> Finding:
    copy = free.get()
    started = monotonic()
    try:
        with copy.changed(*rule.broken(copy.folder)):
            outcome = _outcome(rule, copy.run(rule.caught_by))
    except LookupError as exc:
        outcome = str(exc)
    finally:
        free.put(copy)
    return Finding(rule, outcome, monotonic() - started)


def _try_all(rules: Sequence[Rule], ready: Sequence[TreeCopy]) -> list[Finding]:
    free: SimpleQueue[TreeCopy] = SimpleQueue()
    for copy in ready:
        free.put(copy)
    findings: list[Finding] = []
    with ThreadPoolExecutor(len(ready)) as pool:
        for done in as_completed([pool.submit(_try, rule, free) for rule in rules]):
            findings.append(finding := done.result())
            said = _CAUGHT if finding.outcome == _CAUGHT else "NOT CAUGHT"
            _say(f"[{len(findings)}/{len(rules)}] {said:10} {finding.rule.name}  {finding.seconds:.1f} s")
    return findings


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _table(findings: Sequence[Finding]) -> None:
    width = max(len(finding.rule.name) for finding in findings)
    _say("")
    for rule, outcome, _ in sorted(findings, key=lambda finding: RULES.index(finding.rule)):
        _say(f"{rule.name:{width}}  {outcome}")
        if outcome == _CAUGHT:
            for test in rule.caught_by:
                _say(f"{'':{width}}    {test}")
    caught = sum(finding.outcome == _CAUGHT for finding in findings)
    _say(f"\n{caught} of {len(findings)} caught.")


def _show(rule: Rule) -> None:
    with_it, without_it = (text.splitlines() for text in rule.shown(ROOT))
    _say(
        "\n".join(
            unified_diff(with_it, without_it, rule.symbol, f"{rule.symbol} without {rule.name}", lineterm="")
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sabotage",
        description="Remove safety rules one at a time, and check that their tests fail.",
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="only this rule; can be repeated")
    parser.add_argument(
        "--show", metavar="NAME", help="print the change that removes this rule, without running it"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="number of rules to try in parallel (default: 2)"
    )
    arguments = parser.parse_args()
    wanted: list[str] | None = [arguments.show] if arguments.show else arguments.only
    rules = [rule for rule in RULES if wanted is None or rule.name in wanted]
    unknown = set(wanted or ()) - {rule.name for rule in rules}
    if unknown:
        parser.error(f"unknown rule: {', '.join(sorted(unknown))}")
    if arguments.show:
        _show(rules[0])
        return 0
    with copies(max(1, min(arguments.jobs, len(rules)))) as ready:
        tests = sorted({test for rule in rules for test in rule.caught_by})
        _say(f"Running {len(tests)} tests in the unchanged copy ...")
        unsound = _why_not_sound(ready[0].run(tests), tests)
        if unsound:
            _say(f"The tests fail in the unchanged copy: {unsound}")
            return 1
        _say(f"All pass. Removing {len(rules)} rules, one at a time ...")
        findings = _try_all(rules, ready)
    _table(findings)
    return 0 if all(finding.outcome == _CAUGHT for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
