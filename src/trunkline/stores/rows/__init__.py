"""
Rows of tables as records, and records as values: what is the same in every backend.

A row comes with texts as they were stored by the caller, and with ids as text. The order of the values is the order of
the columns that the function names, or of the table in `port.transfer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

# The statement decides what a column holds; no checker can know.
Row: TypeAlias = Sequence[Any]
Value: TypeAlias = str | bytes | int | float | None
