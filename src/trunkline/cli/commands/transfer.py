"""`trunkline export` and `trunkline import`: everything moves from one store to another, through a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import STORE_HERE, StorePlace
from trunkline.cli.rendering.output import note, print_json, print_text

if TYPE_CHECKING:
    from trunkline.services.transfer import Exported, Imported
    from trunkline.settings import Settings

_ROWS_A_LINE = 10_000

FileArgument = Annotated[Path, Parameter(name="FILE")]


def export_(file: FileArgument, /, *, place: StorePlace = STORE_HERE) -> int:
    """
    Write everything into a file, to be imported into another store.

    Stop Trunkline first. Afterwards this store is for reading only: whatever is unfinished goes on where the file is
    imported. Secrets of agents and keys of the API are not in the file.

    Parameters
    ----------
    file
        The file to write; it must not exist. Only its owner can read it: what agents have said is in it.
    """
    settings = place.settings()
    with explained():
        exported = asyncio.run(_export(settings, file))
    if place.json:
        from trunkline.clock import rfc3339  # noqa: PLC0415  (as below)

        print_json({"file": str(file), "at": rfc3339(exported.at), "rows": dict(exported.counts)})
        return Exit.OK
    print_text(f"Exported {_summary(exported.counts)} to {file}.")
    note("This store is for reading only from now on. Go on with: trunkline import FILE --store URL")
    return Exit.OK


def take_in(file: Path, place: StorePlace) -> int:
    """Takes everything from a file that `export` has written."""
    settings = place.settings()
    with explained():
        imported = asyncio.run(_import(settings, file))
    if place.json:
        from trunkline.clock import rfc3339  # noqa: PLC0415  (as below)

        print_json(
            {
                "file": str(file),
                "exported_at": rfc3339(imported.at),
                "rows": dict(imported.counts),
                "unfinished_runs": imported.unfinished_runs,
                "agents_without_secret": imported.agents_without_secret,
            }
        )
        return Exit.OK
    print_text(f"Imported {_summary(imported.counts)}; {imported.unfinished_runs} runs are unfinished.")
    if imported.agents_without_secret:
        note("Set the secrets of these agents again (trunkline agents apply); until then their tasks wait:")
        for name in imported.agents_without_secret:
            note(f"  {name}")
    return Exit.OK


async def _export(settings: Settings, file: Path) -> Exported:
    from trunkline.errors import NotFound  # noqa: PLC0415  (heavy; few commands need it)
    from trunkline.services.transfer import export_store  # noqa: PLC0415  (as above)
    from trunkline.wiring import open_store  # noqa: PLC0415  (as above)

    if not settings.uses_postgres and not settings.sqlite_path.exists():
        raise NotFound(
            f"There is no database {settings.sqlite_path}.",
            fix="Name its folder with --data, or use --store.",
        )
    async with open_store(settings) as store:
        return await export_store(store, file, _Progress())


async def _import(settings: Settings, file: Path) -> Imported:
    from trunkline.executor.inbox import take_results  # noqa: PLC0415  (heavy; few commands need it)
    from trunkline.services.transfer import import_store  # noqa: PLC0415  (as above)
    from trunkline.wiring import open_store  # noqa: PLC0415  (as above)

    async with open_store(settings, upgrade=True) as store:
        hand_over = None if settings.uses_kafka else take_results
        return await import_store(store, file, _Progress(), hand_over=hand_over)


class _Progress:
    """A line on stderr for each table, and for every ten thousand rows of a long one."""

    def __init__(self) -> None:
        self._table = ""
        self._told = 0

    def __call__(self, table: str, rows: int) -> None:
        if table != self._table or rows - self._told >= _ROWS_A_LINE:
            self._table, self._told = table, rows
            note(f"  {table.replace('_', ' ')}: {rows:,}")


def _summary(counts: Mapping[str, int]) -> str:
    named = {"agents": "agents", "workflows": "workflows", "runs": "runs"}
    return ", ".join(f"{counts[table]:,} {name}" for table, name in named.items())
