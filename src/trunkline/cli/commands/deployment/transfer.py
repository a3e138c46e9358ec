"""`trunkline export` and `trunkline import`: from one store to another, or from another system."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import Choice
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import DEFAULT_URL, STORE_HERE, Flag, Server, StorePlace
from trunkline.cli.rendering.output import note, print_json, print_text

if TYPE_CHECKING:
    from trunkline import clock, errors, wiring
    from trunkline.cli.commands.deployment import import_definitions
    from trunkline.executor import input_sources
    from trunkline.services.operations import store_transfer
    from trunkline.services.operations.store_transfer import StoreExport, StoreImport
    from trunkline.settings import Settings
else:
    import_definitions = lazy_module("trunkline.cli.commands.deployment.import_definitions")
    clock = lazy_module("trunkline.clock")
    errors = lazy_module("trunkline.errors")
    input_sources = lazy_module("trunkline.executor.input_sources")
    store_transfer = lazy_module("trunkline.services.operations.store_transfer")
    wiring = lazy_module("trunkline.wiring")

_ROWS_A_LINE = 10_000

FileArgument = Annotated[Path, Parameter(name="FILE")]
SourceSystem = Annotated[Literal["litecone"], Choice]


def export_(file: FileArgument, /, *, place: StorePlace = STORE_HERE) -> int:
    """
    Write everything to a file, to import it into another store.

    Stop Trunkline first. Afterwards this store is read-only, and unfinished runs continue where you import the file.
    The file contains no secrets of agents and no API keys.

    Parameters
    ----------
    file
        File to write. It must not exist. Only its owner can read it, because it contains the outputs of agents.
    """
    settings = place.settings()
    with explained():
        exported = asyncio.run(_export(settings, file))
    if place.json:
        print_json({"file": str(file), "at": clock.rfc3339(exported.at), "rows": dict(exported.counts)})
        return Exit.OK
    print_text(f"Exported {_summary(exported.counts)} to {file}.")
    note("This store is now read-only. Continue with: trunkline import FILE --store URL")
    return Exit.OK


def take_in(file: Path, place: StorePlace) -> int:
    """Imports everything from a file that `export` wrote."""
    settings = place.settings()
    with explained():
        imported = asyncio.run(_import(settings, file))
    if place.json:
        print_json(
            {
                "file": str(file),
                "exported_at": clock.rfc3339(imported.at),
                "rows": dict(imported.counts),
                "unfinished_runs": imported.unfinished_runs,
                "agents_without_secret": imported.agents_without_secret,
            }
        )
        return Exit.OK
    print_text(f"Imported {_summary(imported.counts)}. Unfinished runs: {imported.unfinished_runs:,}.")
    if imported.agents_without_secret:
        note(
            "Set the secrets of these agents again with trunkline agents update. Until then, their tasks wait:"
        )
        for name in imported.agents_without_secret:
            note(f"  {name}")
    return Exit.OK


def import_(
    files: Annotated[tuple[str, ...], Parameter(name="FILE", negative="")],
    /,
    *,
    from_: Annotated[SourceSystem | None, Parameter(name="--from", show_default=False)] = None,
    out: Annotated[Path | None, Parameter(show_default=False, metavar="FOLDER")] = None,
    apply: Flag = False,
    url: Annotated[str, Parameter(env_var="TRUNKLINE_URL")] = DEFAULT_URL,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Import an exported file into an empty store, or definitions of another system.

    An exported file is imported completely or not at all. IDs stay the same, and unfinished runs continue when
    Trunkline starts. With --from, workflows and agents of another system are converted. What cannot be converted is
    reported with its position and an alternative, and the exit code is then 7.

    Parameters
    ----------
    files
        File to read. With --from, one or more files. - reads stdin. With --from litecone also the URL of its database,
        postgresql://…, which is only read. Set the password in PGPASSWORD, because other processes can read the
        command line.
    from_
        System that the workflows and agents come from.
    out
        With --from: folder to write workflows/NAME.yaml and agents.yaml to. Default: print them.
    apply
        With --from: save them on the server. Workflows that could not be converted completely are not saved.
    url
        With --apply: URL of the server.
    """
    if from_ is None:
        if len(files) != 1 or out is not None or apply:
            raise CliError(
                "An export is a single file, without --out and --apply",
                fix="trunkline import FILE, or for definitions of another system: --from litecone",
                exit_code=Exit.USAGE,
            )
        return take_in(Path(files[0]), place)
    if out is not None and apply:
        raise CliError("--out and --apply cannot be combined", fix="Use one of them.", exit_code=Exit.USAGE)
    return import_definitions.import_definitions(
        files, out=out, server=Server(url, place.json) if apply else None, json=place.json
    )


async def _export(settings: Settings, file: Path) -> StoreExport:
    if not settings.uses_postgres and not settings.sqlite_path.exists():
        raise errors.NotFound(
            f"The database {settings.sqlite_path} does not exist.",
            fix="Set its folder with --data, or use --store.",
        )
    async with wiring.open_store(settings) as store:
        return await store_transfer.export_store(store, file, _Progress())


async def _import(settings: Settings, file: Path) -> StoreImport:
    async with wiring.open_store(settings, upgrade=True) as store:
        hand_over = None if settings.uses_kafka else input_sources.queue_results
        return await store_transfer.import_store(store, file, _Progress(), hand_over=hand_over)


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
