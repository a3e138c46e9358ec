"""Turns CEL's messages into ones that say what to do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from trunkline.workflow.expressions.errors import CompileError
from trunkline.workflow.expressions.plain_paths import (
    FAILURE_VARIABLE,
    FOR_EACH_VARIABLES,
    Scope,
    explain_missing,
)
from trunkline.workflow.expressions.syntax_tree import VariableRead
from trunkline.workflow.validation_report import did_you_mean

_PLACED = re.compile(r"ERROR: <input>:(-?[0-9]+):(-?[0-9]+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_MISSING_KEY = re.compile(r'Key not found in map : "(.*)"')
_EXPECTING = re.compile(r" expecting (\{.*\}|\S+)$")


def compile_error(
    message: str, source: str, steps: Collection[str], variables: Collection[str] | None = None
) -> CompileError:
    """The first of the errors that CEL found, with its place. `variables`: what can be read; None: of a workflow."""
    placed = _PLACED.search(message)
    if placed is None:
        return CompileError(_plain(message), source)
    line, column, problem = max(1, int(placed[1])), max(1, int(placed[2])), placed[3]
    undeclared = _UNDECLARED.search(problem)
    if undeclared is not None:
        return _unknown_name(undeclared[1], source, line, column, steps, variables)
    return CompileError(_plain(problem), source, line, column)


def unknown_step(
    step: str, steps: Collection[str], source: str, line: int = 1, column: int = 1
) -> CompileError:
    hint = did_you_mean(step, steps) or "; the steps are the keys under 'steps'"
    return CompileError(f"unknown step '{step}'{hint}", source, line, column)


def evaluation_message(message: str, scope: Scope, readings: Iterable[VariableRead]) -> str:
    """What an evaluation error means for the data at hand."""
    text = _STATUS.sub("", message)
    missing = _MISSING_KEY.search(text)
    if missing is not None or "SELECT" in text or "container type" in text:
        for reading in readings:
            # has() asks for its key, so that one may be missing; it may not be asked of null, though.
            keys = reading.keys[:-1] if reading.only_tested and missing is not None else reading.keys
            why = explain_missing(scope, reading.variable, keys)
            if why is not None and (missing is None) != ("has no key" in why):
                return why
    if missing is not None:
        return f"the key '{missing[1]}' does not exist; test it with has(…) first"
    if "No matching overloads" in text:
        return f"{text}; the types do not match, convert them with double(…), int(…) or string(…)"
    return text


def _unknown_name(
    name: str, source: str, line: int, column: int, steps: Collection[str], variables: Collection[str] | None
) -> CompileError:
    first, _, rest = name.partition(".")
    if first == "steps" and variables is None:
        line, column = _start_of(r"\bsteps\b", source, line, column)
        if not rest:
            return CompileError("a step is read by its name: steps.NAME.output", source, line, column)
        return unknown_step(rest.partition(".")[0], steps, source, line, column)
    if re.search(rf"\b{re.escape(name)}\s*\(", source):
        line, column = _start_of(rf"\b{re.escape(name)}\s*\(", source, line, column)
        return CompileError(
            f"unknown function '{name}'; CEL does not have this function", source, line, column
        )
    line, column = _start_of(rf"\b{re.escape(first)}\b", source, line, column)
    if variables is not None:
        hint = did_you_mean(first, variables) or ";"
        known = f"an expression can read {' and '.join(variables)} here; put text in quotes"
        return CompileError(f"unknown name '{first}'{hint} {known}", source, line, column)
    if first in FOR_EACH_VARIABLES:
        message = f"'{first}' is only available in the 'input' and 'when' of a step with 'for_each'"
        return CompileError(message, source, line, column)
    if first == FAILURE_VARIABLE:
        message = "'failure' is only available in the 'compensate' of a step"
        return CompileError(message, source, line, column)
    if first in {"round", "previous"}:
        known = "'round' and previous.steps.NAME are only available in a step with 'repeat' and the steps inside it"
        return CompileError(f"unknown name '{name}'; {known}", source, line, column)
    hint = did_you_mean(first, ("input", "run", "steps")) or ";"
    known = "an expression can read input, run and steps.NAME; put text in quotes"
    return CompileError(f"unknown name '{first}'{hint} {known}", source, line, column)


def _start_of(pattern: str, source: str, line: int, column: int) -> tuple[int, int]:
    """CEL points at the last part of a name; people look for its beginning."""
    lines = source.split("\n")
    if line > len(lines):
        return line, column
    found = [match.start() + 1 for match in re.finditer(pattern, lines[line - 1])]
    return line, max((start for start in found if start <= column), default=column)


def _plain(problem: str) -> str:
    text = _STATUS.sub("", _STATUS.sub("", problem)).removeprefix("Syntax error: ")
    text = _EXPECTING.sub("", text)
    if "recursion" in text:
        return "the expression is nested too deeply, or its chain is too long; CEL allows 32 levels"
    if "'<EOF>'" in text:
        return "the expression is incomplete"
    return f"invalid CEL: {text}"
