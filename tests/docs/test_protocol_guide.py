"""The eight common issues: what the guide says that an operator reads is what the program prints."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.docs.blocks import ROOT, anchors_of, blocks_of
from tests.docs.wire_blocks import symptoms_of

from trunkline.jsontypes import decode

GUIDE = "docs/guides/migrating-agents.md"
ISSUES = (
    "issue-1-input-extraction-fails",
    "issue-2-response-missing-required-fields",
    "issue-3-empty-artifacts-array",
    "issue-4-status-state-not-recognized",
    "issue-5-error-responses-not-formatted-correctly",
    "issue-6-history-array-format-issues",
    "issue-7-content-type-header-issues",
    "issue-8-id-mismatch",
)


def test_every_issue_has_its_place() -> None:
    assert set(ISSUES) <= anchors_of(ROOT / GUIDE)


def test_every_symptom_is_what_the_program_prints_for_that_answer() -> None:
    blocks = [block for block in blocks_of(GUIDE) if {"wrong", "symptom"} & block.words.keys()]
    told: set[str] = set()
    for wrong, symptom in pairwise(blocks):
        if "wrong" in wrong.words:
            assert "symptom" in symptom.words, str(wrong)
            assert symptom.heading == wrong.heading
            assert symptom.text.splitlines() == symptoms_of(wrong), str(symptom)
            told.add(wrong.heading.partition(":")[0])
    assert told == {f"Issue {number}" for number in range(1, 9)}


def test_the_code_that_extracts_the_input_finds_it_in_both_forms_of_the_request() -> None:
    blocks = blocks_of(GUIDE)
    shown = next(block for block in blocks if "def extract_input" in block.text)
    namespace: dict[str, Any] = {}
    exec(shown.text, namespace)  # noqa: S102 - it is our own guide
    requests = [
        decode(block.text.encode()) for block in blocks if block.words.get("request") == "jsonrpc-2.0"
    ]
    assert [namespace["extract_input"](request) for request in requests] == [
        {"query": "What is the weather?", "context": "user location"},
        {"query": "What is the weather?", "context": "user location"},
    ]
    text_alone = {
        "params": {"message": {"parts": [{"kind": "text", "text": "Hello"}], "metadata": {"trace": 1}}}
    }
    assert namespace["extract_input"](text_alone) == {"text": "Hello"}
