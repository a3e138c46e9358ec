"""What can go wrong with an expression: when it is saved, and when it is evaluated."""

from __future__ import annotations


class ExpressionError(Exception):
    """The expression has no usable value for this data."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.message = message
        self.source = source

    def __str__(self) -> str:
        return f"{self.message}, in ${{ {self.source} }}"


class CompileError(Exception):
    """The expression cannot be used at all. Line and column count from 1, within its source."""

    def __init__(self, message: str, source: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.source = source
        self.line = line
        self.column = column
