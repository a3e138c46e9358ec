"""A safety rule: how to remove it, and the tests that must then fail."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.sabotage.mutation import Mutation
from tests.sabotage.symbols import LocatedSymbol, locate


@dataclass(frozen=True, kw_only=True)
class Rule:
    name: str
    # What an operator would observe without the rule.
    breaks: str
    # The function, method, class or constant that implements it: `trunkline.machine.decide:decide`.
    symbol: str
    change: Mutation | tuple[Mutation, ...]
    # Each of these tests fails without the rule; named with its parameters if only some of them fail.
    caught_by: tuple[str, ...]
    # A text that each failure contains: that of an assertion, not that of a program that no longer runs.
    shows: str = "assert"

    @property
    def changes(self) -> Sequence[Mutation]:
        return self.change if isinstance(self.change, tuple) else (self.change,)

    def locate(self, root: Path) -> LocatedSymbol:
        """Where the symbol is, in a copy of the tree."""
        try:
            return locate(root, self.symbol)
        except LookupError as exc:
            raise LookupError(f"{self.name}: {exc}") from exc

    def broken(self, root: Path) -> tuple[str, str]:
        """The path of the file that holds the rule, and its text without the rule."""
        located = self.locate(root)
        for change in self.changes:
            try:
                change.apply(located.symbol)
            except LookupError as exc:
                raise LookupError(f"{self.name}: {self.symbol} has changed: {exc}") from exc
        return located.path, ast.unparse(ast.fix_missing_locations(located.module)) + "\n"

    def shown(self, root: Path) -> tuple[str, str]:
        """The symbol's code with the rule and without it."""
        located = self.locate(root)
        before = ast.unparse(located.symbol)
        for change in self.changes:
            change.apply(located.symbol)
        return before, ast.unparse(ast.fix_missing_locations(located.symbol))
