"""Rules of labels: no change is lost, and a run is not shown with labels by which it cannot be found."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Drop, ReplaceText
from tests.sabotage.rule import Rule

_STORE = "tests/contract/stores/test_run_labels.py"
_API = "tests/scenarios/api/test_run_labels.py"

RUN_LABELS: Sequence[Rule] = (
    Rule(
        name="labels-change-one-after-another",
        breaks="Of two changes of a run's labels at the same time, one is lost.",
        symbol="trunkline.stores.postgres.tables.runs:_LABELS",
        change=ReplaceText(" FOR UPDATE", ""),
        caught_by=(f"{_STORE}::test_changes_at_the_same_time_are_all_kept[postgres]",),
    ),
    Rule(
        name="removed-label-finds-nothing",
        breaks="A run is found by labels that it no longer has.",
        symbol="trunkline.stores.sqlite.tables.runs:SqliteRunWrites.set_labels",
        change=ReplaceText(
            "DELETE FROM run_labels WHERE run_id = ?", "DELETE FROM run_labels WHERE run_id = ? AND 0"
        ),
        caught_by=(f"{_STORE}::test_set_labels_replace_those_that_the_run_had[sqlite]",),
        shows="UNIQUE",
    ),
    Rule(
        name="number-of-labels",
        breaks="One request after another gives a run ever more labels, each of which is a row.",
        symbol="trunkline.services.runs.labels:changed_labels",
        change=Drop("call statement", 1, of=1),
        caught_by=(f"{_API}::test_a_change_that_cannot_be_made_changes_nothing[embedded]",),
    ),
)
