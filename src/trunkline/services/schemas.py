"""
Saved JSON Schemas, which steps refer to by name: `output_schema: {$ref: schemas/NAME}`.

A workflow that is saved gets the schema as it is then. Later changes concern workflows that are saved afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trunkline.errors import Finding, Invalid, NotFound
from trunkline.jsontypes import JsonObject, encode
from trunkline.services.heavy_work import HeavyWork
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import SavedSchema, Store
from trunkline.workflow import MAX_SCHEMA_BYTES, InputSchema

# A name is a part of addresses and of references.
SCHEMA_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
_NAME = re.compile(SCHEMA_NAME_PATTERN)
_LONGEST_REASON = 300


class SavedResult(NamedTuple):
    saved: SavedSchema
    # False: it is the one that there was.
    changed: bool


class Schemas:
    def __init__(self, store: Store, work: HeavyWork | None = None) -> None:
        self._store = store
        self._work = work or HeavyWork()

    async def save(self, name: str, schema: JsonObject) -> SavedResult:
        """Raises `Invalid`. The same schema again changes nothing."""
        text = encode(schema)
        await self._work.run(_check, name, schema, len(text))
        async with self._store.transaction() as tx:
            earlier = await tx.schemas.get(name)
            if earlier is not None and earlier.schema == text:
                return SavedResult(earlier, False)
            saved = await tx.schemas.put(name, text)
            await tx.audit.put([audit_entry("schema", "save", name, version=saved.version)])
        return SavedResult(saved, True)

    async def get(self, name: str) -> SavedSchema:
        found = await self._store.schemas.get(name)
        if found is None:
            raise _unknown(name)
        return found

    async def list(self, *, limit: int, after: str | None = None) -> Sequence[SavedSchema]:
        """In the order of their names; `after` is the last name seen."""
        return await self._store.schemas.page(limit=limit, after=after)

    async def delete(self, name: str) -> None:
        """Saved workflows keep the schema."""
        async with self._store.transaction() as tx:
            deleted = await tx.schemas.delete(name)
            if deleted:
                await tx.audit.put([audit_entry("schema", "delete", name)])
        if not deleted:
            raise _unknown(name)


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no schema {name!r}.", fix="List the schemas: trunkline schemas list.")


def _check(name: str, schema: JsonObject, size: int) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"{name[:100]!r} is not a valid schema name.",
            fix="Use up to 100 letters, digits, dots, hyphens and underscores. Start with a letter or a digit.",
        )
    problem = None
    if size > MAX_SCHEMA_BYTES:
        problem = f"has {size:,} bytes, but the limit is {MAX_SCHEMA_BYTES:,}"
    else:
        try:
            problem = InputSchema(schema, "output.data").too_complex
        except ValueError as exc:
            problem = f"is not valid JSON Schema: {str(exc)[:_LONGEST_REASON]}"
    if problem is not None:
        raise Invalid(
            f"The schema {name} {problem}.",
            findings=[Finding(path="schema", message=problem)],
            fix="Correct the schema and save it again.",
        )
