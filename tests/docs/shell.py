"""
What a shell block would start, found without starting it.

Every command of Trunkline is given to its own parser, every address of its API is looked up in OpenAPI, and every
target of make in the Makefile.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from urllib.parse import urlsplit

from cyclopts import App, CycloptsError
from tests.docs.blocks import ROOT

from trunkline.cli.app import build_app, load_commands
from trunkline.jsontypes import decode

_HERE_DOCUMENT = re.compile(r"<<-?\s*'?(\w+)'?[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"^\w+=")
_ENDS_A_COMMAND = re.compile(r"^[;|&()]+$")


def mistakes_in(text: str) -> list[str]:
    bash = shutil.which("bash")
    assert bash is not None
    read = subprocess.run([bash, "-n"], input=text, capture_output=True, text=True, check=False)
    if read.returncode:
        return [read.stderr]
    return [mistake for command in commands_in(text) for mistake in _mistakes_of(command)]


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of each command, without variables in front of it and without redirections."""
    text = _HERE_DOCUMENT.sub("", text).replace("\\\n", " ")
    for line in _logical_lines(text):
        words: list[str] = []
        for word in [*_words(line), ";"]:
            if not _ENDS_A_COMMAND.match(word):
                words.append(word)
                continue
            if command := _without_redirections(words):
                yield command
            words = []


def _words(line: str) -> Iterator[str]:
    reading = shlex.shlex(line, posix=True, punctuation_chars=True)
    reading.whitespace_split = True
    return reading


def _logical_lines(text: str) -> Iterator[str]:
    """Lines, joined where a quotation goes over several."""
    waiting = ""
    for line in text.splitlines(keepends=True):
        waiting += line
        try:
            shlex.split(waiting, comments=True)
        except ValueError:
            continue
        yield waiting
        waiting = ""


def _without_redirections(words: list[str]) -> list[str]:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in {"if", "while", "do", "then", "!"}):
        words = words[1:]
    kept: list[str] = []
    for number, word in enumerate(words):
        if not re.fullmatch(r"[<>]+|[<>]&?\d?", word) and (
            number == 0 or words[number - 1] not in {"<", ">", ">>"}
        ):
            kept.append(word)
    return kept


def _mistakes_of(command: list[str]) -> list[str]:
    program, *rest = command
    match program.rpartition("/")[2]:
        case "trunkline":
            return _mistakes_of_trunkline(rest)
        case "curl":
            return _mistakes_of_curl(rest)
        case "make":
            return [f"make has no target {word}" for word in rest if word.islower() and word not in targets()]
        case "python" | "python3" if rest[:1] == ["-m"]:
            return [] if find_spec(rest[1]) else [f"there is no module {rest[1]}"]
        case _:
            return []


@cache
def app() -> App:
    whole = build_app()
    load_commands(whole)
    return whole


def _mistakes_of_trunkline(words: list[str]) -> list[str]:
    if not words:
        return ["trunkline alone does nothing"]
    try:
        app().parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return [f"trunkline {' '.join(words)}: {error}"]
    return []


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def operations() -> list[tuple[str, re.Pattern[str]]]:
    document = decode((ROOT / "tests/public/openapi.json").read_bytes())
    assert isinstance(document, dict)
    paths = document["paths"]
    assert isinstance(paths, dict)
    found: list[tuple[str, re.Pattern[str]]] = []
    for path, methods in paths.items():
        assert isinstance(methods, dict)
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
        found += [(method.upper(), pattern) for method in methods]
    return found


def _mistakes_of_curl(words: list[str]) -> list[str]:
    addresses = [word for word in words if "://" in word and "/api/v1/" in word]
    method = next((words[place + 1] for place, word in enumerate(words) if word == "-X"), None)
    method = method or ("POST" if {"-d", "--data", "--data-binary"} & {*words} else "GET")
    return [
        f"there is no {method} {urlsplit(address).path}"
        for address in addresses
        if not any(method == known and path.fullmatch(urlsplit(address).path) for known, path in operations())
    ]
