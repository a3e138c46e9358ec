"""`trunkline import`: from a store of ours, or what another system has written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.commands.transfer import take_in
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.options import DEFAULT_URL, STORE_HERE, Flag, Server, StorePlace

System = Literal["litecone"]


def import_(
    files: Annotated[tuple[str, ...], Parameter(name="FILE", negative="")],
    /,
    *,
    from_: Annotated[System | None, Parameter(name="--from", show_default=False)] = None,
    out: Annotated[Path | None, Parameter(show_default=False)] = None,
    apply: Flag = False,
    url: Annotated[str, Parameter(env_var="TRUNKLINE_URL")] = DEFAULT_URL,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Take everything from a file that `export` has written, into an empty store; or definitions of another system.

    Of an export all comes in, or nothing. Ids stay as they are, and unfinished runs go on when Trunkline starts.
    With --from, workflows and agents are written in our language; what could not be carried over is told with its
    place and a way out, and the exit code is 7 then.

    Parameters
    ----------
    files
        The file to read; with --from as many as you like, - is stdin.
    from_
        The system whose workflows and agents the files hold.
    out
        With --from: the folder to write into, workflows/NAME.yaml and agents.yaml. Default: print them.
    apply
        With --from: save them on the server instead. A workflow of which something is missing is not saved.
    url
        With --apply: the address of the server.
    """
    if from_ is None:
        if len(files) != 1 or out is not None or apply:
            raise CliError(
                "An export is one file, and goes into a store",
                fix="trunkline import FILE, or say which system has written the files: --from litecone",
                exit_code=Exit.USAGE,
            )
        return take_in(Path(files[0]), place)
    if out is not None and apply:
        raise CliError("--out and --apply exclude one another", fix="Use one of them.", exit_code=Exit.USAGE)
    from trunkline.cli.commands.import_definitions import import_definitions  # noqa: PLC0415  (compiles CEL: slow)

    return import_definitions(
        files, out=out, server=Server(url, place.json) if apply else None, json=place.json
    )
