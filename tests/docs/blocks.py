"""
The code blocks of the documentation, with what the words behind their language say about them.

    ```sh run                  executed, in the order of the page, in the reader's terminal
    ```sh background=8080      executed in a terminal of its own, and ready when something listens at the port
    ```sh run stopped=8000     executed after the terminal of that port was stopped; exit=7: it ends so
    ```sh every-terminal       executed first in each terminal of the page
    ```python file=agent.py    what the reader saves under this name
    ```text output             what the block before it prints; … stands for anything
    ```text output=holds       what is found somewhere in it
    ```json request=PROTOCOL   what the dialect sends; answer=, failure= what it takes for one
    ```json rest=Problem       fits this schema of OpenAPI; message= one of AsyncAPI
    ```yaml step               a part of a workflow's step

A block that is not executed is read by whatever reads it for a user: tests/docs/block_checks.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    page: str
    line: int
    language: str
    # The words without a value have an empty one.
    words: dict[str, str]
    text: str
    heading: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    found = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
    return sorted(page.relative_to(ROOT).as_posix() for page in found if "node_modules" not in page.parts)


def blocks_of(page: str) -> list[Block]:
    return list(_read(page, (ROOT / page).read_text()))


def _read(page: str, text: str) -> Iterator[Block]:
    for found in _FENCE.finditer(text):
        language, *words = shlex.split(found["info"]) or [""]
        pairs = [word.partition("=") for word in words]
        headings = _HEADING.findall(_FENCE.sub("", text[: found.start()]))
        yield Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            language,
            {name: value for name, _, value in pairs},
            re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            headings[-1] if headings else "",
        )


def prose_of(page: str) -> str:
    """The page without its code blocks."""
    return _FENCE.sub("", (ROOT / page).read_text())


def anchors_of(page: Path) -> set[str]:
    """The names that a page's headings have as the targets of links."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
