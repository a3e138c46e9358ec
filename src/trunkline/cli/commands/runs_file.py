"""`trunkline runs file`: a file of an agent that was too long for the step's output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.options import HERE, RunArgument, Server
from trunkline.cli.rendering.output import note, print_json


def file(
    run: RunArgument,
    blob: Annotated[str, Parameter(name="FILE", help="The file's id: `blob.id` in the step's output.")],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    server: Server = HERE,
) -> int:
    """
    Get a file that an agent has answered with.

    Short ones are in the step's output itself; of long ones it has a reference, whose id this takes.

    Parameters
    ----------
    output
        Where to write it. Default: stdout.
    """
    content = server.client().file(run, blob)
    if output is None and not server.json:
        if sys.stdout.isatty():
            raise CliError(
                "The file is not text that a terminal should show",
                fix="Give it a name with --output, or send it on with |",
                exit_code=Exit.USAGE,
            )
        sys.stdout.buffer.write(content)
        return Exit.OK
    if output is not None:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise CliError(
                f"{output} cannot be written: {error.strerror or error}",
                fix="Choose another place with --output",
                exit_code=Exit.USAGE,
            ) from error
        note(f"{len(content)} bytes are in {output}")
    if server.json:
        print_json(
            {"run": run, "id": blob, "bytes": len(content), "path": None if output is None else str(output)}
        )
    return Exit.OK
