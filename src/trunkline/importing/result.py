"""What an import gives back."""

from __future__ import annotations

import msgspec

from trunkline.importing.account import ImportRemark
from trunkline.jsontypes import JsonObject


class ImportedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    # Where it was found.
    file: str
    # In the workflow language.
    definition: JsonObject
    # Whether everything was carried over.
    complete: bool


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    workflows: tuple[ImportedWorkflow, ...]
    # As `agents apply` reads them.
    agents: tuple[JsonObject, ...]
    remarks: tuple[ImportRemark, ...]
    # How many remarks there were beyond those.
    dropped: int
    # How many things were not carried over.
    lost: int
