"""What a trigger may contain, and how a wrong one is refused."""

from __future__ import annotations

import pytest

from trunkline.clock import Instant
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, encode
from trunkline.triggers import (
    CompiledTrigger,
    TriggerDocument,
    canonical_form,
    definition_from_canonical,
    load_schedule,
    load_trigger,
)

NOW = Instant(1_767_225_600_000_000)
FULL = """
kind: trigger
name: nightly
description: Every night
workflow: report
version: 3
input: {day: "${ trigger.scheduled_at }", limit: 10}
schedule:
  cron: 30 2 * * *
  timezone: Europe/Berlin
  jitter: 5m
  overlap: queue
  catch_up: all
  catch_up_window: 2d
  start: 2026-01-01T00:00:00
  end: 2027-01-01T00:00:00Z
"""


def load(text: str) -> CompiledTrigger:
    return load_trigger(TriggerDocument(text, "trigger.yaml"), NOW)


def refused(text: str) -> list[tuple[str, int | None, int | None, str]]:
    with pytest.raises(Invalid) as error:
        load(text)
    return [(found.path, found.line, found.column, found.message) for found in error.value.findings]


def test_a_trigger_comes_back_from_its_canonical_form() -> None:
    definition = load(FULL).definition
    assert definition_from_canonical(canonical_form(definition)) == definition
    assert definition.schedule is not None
    # Local times are those of the zone.
    assert definition.schedule.start == 1_767_222_000_000_000


def test_the_input_is_a_template_over_the_trigger() -> None:
    trigger = load(FULL)
    scope: dict[str, Json] = {"trigger": {"scheduled_at": "2026-01-02T01:30:00.000000Z"}}
    made = trigger.input.evaluate(scope.__getitem__)
    assert made == {"day": "2026-01-02T01:30:00.000000Z", "limit": 10}
    assert trigger.constant_input is None
    assert load("{name: a, workflow: w, schedule: {every: 1h}}").constant_input == ({},)


@pytest.mark.parametrize(
    ("schedule", "line", "column", "message"),
    [
        ("cron: 0 25 * * *", 4, 11, "'25' is not a valid hour"),
        ("cron: 0 0 30 2 *", 4, 13, "'30' is not a valid day-of-month"),
        ("cron: 0 0 29 2 MON#5\n  end: 2026-02-01T00:00:00Z", None, None, ""),
        ("every: 5", 4, 10, "'every' must be a duration"),
        ("every: 10ms", 4, 10, "'every' must be at least 1s"),
        ("every: 1h\n  timezone: Europe/Berln", 5, 13, "did you mean 'Europe/Berlin'"),
        ("every: 1h\n  timezone: ../../etc/passwd", 5, 13, "is not a known time zone"),
        ("every: 1h\n  timezone: Europe", 5, 13, "is not a known time zone"),
        ("every: 1h\n  jitter: 2h", 5, 11, "'jitter' must be at most 1h"),
        ("every: 1h\n  overlap: skipp", 5, 12, "did you mean 'skip'"),
        ("every: 1h\n  catch_up: some", 5, 13, "'catch_up' must be none, last or all"),
        ("every: 1h\n  catch_up_window: 31d", 5, 20, "must be at most 30d"),
        ("every: 1h\n  start: tomorrow", 5, 10, "'start' must be a time such as"),
        ("every: 1h\n  start: 0001-01-01T00:00:00Z", 5, 10, "must be between 1971 and"),
        ("every: 1h\n  start: 2026-01-02\n  end: 2026-01-01", 6, 8, "'end' must be later than 'start'"),
        ("every: 1h\n  cron: 0 0 * * *", 4, 3, "exactly one of cron, every and at"),
        ("at: []", 4, 7, "'at' must have 1 to 1,000 times"),
        ("at: [2026-01-01T00:00:00Z, 5]", 4, 7, "'at' must be a time such as"),
        ("every: 1h\n  color: red", 5, 3, "unknown key 'color'"),
    ],
)
def test_a_wrong_schedule_is_refused_with_line_and_column(
    schedule: str, line: int | None, column: int | None, message: str
) -> None:
    text = f"name: nightly\nworkflow: report\nschedule:\n  {schedule}\n"
    if line is None:
        assert load(text).schedule is not None
        return
    found = refused(text)
    assert [(where, place) for _, where, place, _ in found] == [(line, column)]
    assert message in found[0][3]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("[]", "", "a trigger must be a mapping"),
        ("{workflow: w, schedule: {every: 1h}}", "", "'name' is missing"),
        ("{name: a/b, workflow: w, schedule: {every: 1h}}", "name", "'a/b' is not a valid name"),
        ("{name: a, schedule: {every: 1h}}", "", "'workflow' is missing"),
        ("{name: a, workflow: w}", "", "needs exactly one of schedule"),
        ("{name: a, kind: workflow, workflow: w, schedule: {every: 1h}}", "kind", "'kind' must be trigger"),
        ("{name: a, workflow: w, schedule: 5}", "schedule", "'schedule' must be a mapping"),
        ("{name: a, workflow: w, version: 0, schedule: {every: 1h}}", "version", "must be a whole number"),
        ("{name: a, workflow: w, enabled: 1, schedule: {every: 1h}}", "enabled", "must be true or false"),
    ],
)
def test_a_wrong_trigger_is_refused(text: str, path: str, message: str) -> None:
    assert any(found[0] == path and message in found[3] for found in refused(text))


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("trigger.scheduled_at +", 31, "the expression is incomplete"),
        ("input.day", 31, "unknown name 'input'; an expression can read trigger here"),
        ("triger.name", 31, "unknown name 'triger'; did you mean 'trigger'?"),
        ("steps.a.output", 31, "unknown name 'steps'"),
    ],
)
def test_a_wrong_expression_is_refused_at_its_place(expression: str, column: int, message: str) -> None:
    text = f'name: a\nworkflow: w\nschedule: {{every: 1h}}\ninput: {{a: 1, given: {{b: "${{ {expression} }}"}}}}\n'
    ((path, line, _, said),) = refused(text)
    assert (path, line) == ("input.given.b", 4)
    assert column
    assert message in said


def test_a_cron_expression_that_never_occurs_is_refused() -> None:
    ((path, line, _, message),) = refused("name: a\nworkflow: w\nschedule: {cron: 0 0 */20 * 1L}\n")
    assert (path, line) == ("schedule.cron", 3)
    assert "would never fire" in message


def test_a_document_has_a_limit() -> None:
    with pytest.raises(Invalid, match="at most 1,048,576 bytes"):
        TriggerDocument(b" " * 1_048_577, "body")
    times = [f"2026-01-01T00:00:00.{number:06}Z" for number in range(1_001)]
    with pytest.raises(Invalid, match="1 to 1,000 times"):
        load_schedule(TriggerDocument(encode({"at": times}), "body"), NOW)


def test_a_schedule_can_be_read_by_itself() -> None:
    schedule = load_schedule(
        TriggerDocument("{at: [2026-01-03T00:00:00Z, '2026-01-02T00:00:00+01:00']}", "body"), NOW
    )
    assert schedule.preview(NOW, 10) == [1_767_308_400_000_000, 1_767_398_400_000_000]
