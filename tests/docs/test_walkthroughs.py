"""Pages with runnable blocks are followed from top to bottom: each command gives the output that the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.blocks import Block, blocks_of, pages
from tests.docs.page_runner import PageRunner

from trunkline.jsontypes import Json, decode

_POSTGRES = "postgresql://trunkline@db.internal/trunkline"
_KAFKA = "kafka://kafka-1.internal:9092"
_TO_FOLLOW = [page for page in pages() if any("run" in block.words for block in blocks_of(page))]


@pytest.mark.parametrize("page", _TO_FOLLOW)
def test_following_the_page_gives_what_it_says(
    page: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    blocks = blocks_of(page)
    printed = ""
    addresses, environment = services_for(blocks, request)
    with PageRunner(tmp_path, addresses=addresses, environment=environment) as reader:
        for block in blocks:
            if "file" in block.words:
                reader.save(block)
            if "stopped" in block.words:
                reader.stop(block.words["stopped"])
            if "every-terminal" in block.words:
                reader.do_in_every_terminal(block)
            elif "background" in block.words:
                reader.start(block)
            elif "run" in block.words:
                printed = reader.do(block)
            elif "output" in block.words:
                assert is_what_was_said(block, reader.adapted(block.text), printed), (str(block), printed)


def services_for(
    blocks: list[Block], request: pytest.FixtureRequest
) -> tuple[dict[str, str], dict[str, str]]:
    """A real PostgreSQL and Kafka, where the page tells of some: their addresses, and topics of one's own."""
    if not any("every-terminal" in block.words and _POSTGRES in block.text for block in blocks):
        return {}, {}
    database: str = request.getfixturevalue("postgres_url")
    servers: str = request.getfixturevalue("kafka_servers")
    prefix: str = request.getfixturevalue("topic_prefix")
    topics = {f"TRUNKLINE_{kind.upper()}_TOPIC": f"{prefix}{kind}" for kind in ("tasks", "results", "events")}
    return {_POSTGRES: database, _KAFKA: f"kafka://{servers}"}, {**topics, "TRUNKLINE_KAFKA_GROUP": prefix}


def is_what_was_said(block: Block, said: str, printed: str) -> bool:
    if block.language == "json":
        return alike(decode(said.encode()), decode(printed.encode()))
    pattern = ".*?".join(re.escape(piece) for piece in said.strip().split("…"))
    reads = re.search if block.words["output"] == "holds" else re.fullmatch
    return reads(pattern, printed.strip(), re.DOTALL) is not None


def alike(said: Json, printed: Json) -> bool:
    """Whether both are the same, where the page does not leave something open with …"""
    match said, printed:
        case "…", _:
            return True
        case dict(), dict():
            return said.keys() == printed.keys() and all(alike(said[key], printed[key]) for key in said)
        case list(), list():
            return len(said) == len(printed) and all(map(alike, said, printed))
        case _:
            return said == printed


def test_the_tutorials_and_the_guides_to_do_things_by_are_followed() -> None:
    assert {page.removeprefix("docs/").removesuffix(".md") for page in _TO_FOLLOW} >= {
        "tutorials/first-workflow",
        "tutorials/first-agent-python",
        "tutorials/first-agent-node",
        "tutorials/first-agent-go",
        "guides/backing-up",
        "guides/front-door",
        "guides/importing",
        "guides/moving-to-kafka",
        "guides/rolling-out",
        "guides/testing-agents",
        "guides/writing-a-dialect",
        "guides/zones",
        "reference/python",
    }


@pytest.mark.parametrize(
    ("language", "said", "printed", "fits"),
    [
        ("text", "Hello, …!", "Hello, Ann!", True),
        ("text", "Hello", "Hello, Ann!", False),
        ("json", '{"id": "…", "n": [1]}', '{"n": [1], "id": "r-1"}', True),
        ("json", '{"id": "…", "n": [1]}', '{"n": [2], "id": "r-1"}', False),
        ("json", '{"id": "…"}', '{"n": [2], "id": "r-1"}', False),
    ],
)
def test_what_is_printed_is_compared_with_what_the_page_says(
    language: str, said: str, printed: str, fits: bool
) -> None:
    block = Block("page.md", 1, language, {"output": ""}, said, "")
    assert is_what_was_said(block, said, printed) is fits
