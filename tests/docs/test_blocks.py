"""Every code block of the documentation is valid in its language, and every link leads somewhere."""

from __future__ import annotations

import re

import pytest
from tests.docs.block_checks import READERS
from tests.docs.blocks import ROOT, Block, anchors_of, blocks_of, pages, prose_of

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_WORDS = {
    *("run", "background", "every-terminal", "file", "output", "exit", "stopped", "step", "policy"),
    *("request", "answer", "failure", "wrong", "symptom", "status", "rest", "message"),
    *("input_mode", "output_mode", "params", "method"),
}


@pytest.mark.parametrize("page", pages())
def test_every_code_block_can_be_used_as_it_stands(page: str) -> None:
    assert {str(block): found for block in blocks_of(page) if (found := mistakes_of(block))} == {}


def mistakes_of(block: Block) -> list[str]:
    reader = READERS.get(block.language)
    if reader is None:
        return [f"nothing here reads {block.language or 'a block without a language'}"]
    if block.language[0] != "{" and (unknown := set(block.words) - _WORDS):
        return [f"these words mean nothing: {', '.join(sorted(unknown))}"]
    try:
        return reader(block)
    except Exception as exc:  # noqa: BLE001 - whatever the reader of a user's text says is what is wrong
        return [f"{type(exc).__name__}: {exc}"]


def block(language: str, text: str, **words: str) -> Block:
    return Block("page.md", 1, language, words, text, "")


@pytest.mark.parametrize(
    "wrong",
    [
        block("", "anything"),
        block("cobol", "DISPLAY 'HELLO'."),
        block("json", "{'a': 1}"),
        block("json", '{"task_id": "t", "inptu": 1}', request="simple-a2a"),
        block(
            "json", '{"task_id": "t", "status": "error", "output": null, "error": "no"}', answer="simple-a2a"
        ),
        block(
            "json", '{"task_id": "t", "status": "success", "output": 1, "error": null}', failure="simple-a2a"
        ),
        block("json", "{}", answer="simple-a2a", sesnd="1"),
        block("json", '{"title": "Stale"}', rest="Problem"),
        block("json", '{"workflwo": "hello"}', message="StartRun"),
        block("yaml", "name: a\nsteps: {b: {agnt: C}}"),
        block("yaml", "agents: [{name: A, url: http://a, protocl: auto}]"),
        block("toml", "prot = 8000"),
        block("ini", "[Service]\nExecStart=trunkline upp"),
        block("python", "def f(:"),
        block("python", "from trunkline.zones import NoSuchName"),
        block("python", "from trunkline.no_such_module import anything"),
        block("javascript", "const = 1"),
        block("go", "package main\nfunc {"),
        block("sh", "trunkline agnts list"),
        block("sh", "trunkline runs list --statsu FAILED"),
        block("sh", "RUN=$(trunkline rnu hello)"),
        block("sh", "make no-such-target"),
        block("sh", "echo 'unfinished"),
        block("sh", "curl -s http://127.0.0.1:8000/api/v1/agnts"),
        block("sh", "curl -s -X DELETE http://127.0.0.1:8000/api/v1/runs"),
        block("sh", "python -m trunkline.no_such_module"),
        block("console", "no command"),
        block("{literalinclude}", "", **{"no-such-file.py": ""}),
    ],
    ids=lambda wrong: f"{wrong.language}-{wrong.text[:30]}",
)
def test_a_block_that_cannot_be_used_would_be_noticed(wrong: Block) -> None:
    assert mistakes_of(wrong)


@pytest.mark.parametrize("page", pages())
def test_every_page_begins_with_its_name(page: str) -> None:
    assert (ROOT / page).read_text().startswith("# ")


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    for link in _LINK.findall(prose_of(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), link
