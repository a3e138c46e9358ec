"""
`trunkline secrets`: what workflows send to agents, by name.

A value never stands on the command line, where every process on the machine can read it.
"""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import STDIN, secret_from_env, secret_from_file
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import note, print_json, print_table

NameArgument = Annotated[str, Parameter(name="NAME", help="The secret's name, as workflows have it.")]

app = App(
    name="secrets",
    help="Set, list and remove secrets that workflows name; nobody can read one again.",
    version_flags=[],
)


@app.command(name="set")
def set_secret(
    name: NameArgument,
    /,
    *,
    from_env: str | None = None,
    from_file: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Set a secret, or change it: a step's input names it as {"$secret": "NAME"}.

    The value comes from stdin, or is asked for without showing it; the line's end is not a part of it. It has 4 to
    65536 characters: a shorter one could not be hidden in records. Steps use a changed one within two seconds.

    Parameters
    ----------
    from_env
        The environment variable that holds the value.
    from_file
        The file that holds the value.
    """
    kept = server.client().set_secret(name, _value(name, from_env, from_file))
    if server.json:
        print_json(kept)
    else:
        note(f"{name} is set" if kept["version"] == 1 else f"{name} is changed")
    return Exit.OK


@app.command(name="list")
def list_secrets(*, limit: int | None = None, server: Server = HERE) -> int:
    """
    List the secrets by name; never what they hold.

    Parameters
    ----------
    limit
        At most this many. Default: all.
    """
    page = server.client().secrets(limit=limit)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [secret["name"], str(secret["version"]), secret["updated_at"], secret["created_at"]]
        for secret in page.items
    ]
    print_table(("SECRET", "VERSION", "CHANGED", "CREATED"), rows)
    if not rows:
        note("There are no secrets. Set one with: trunkline secrets set NAME")
    return Exit.OK


@app.command(name="remove")
def remove(name: NameArgument, /, *, server: Server = HERE) -> int:
    """Remove a secret, for good: steps that need it fail before anything is sent."""
    server.client().remove_secret(name)
    if server.json:
        print_json({"removed": name})
    else:
        note(f"{name} is gone")
    return Exit.OK


def _value(name: str, env: str | None, file: str | None) -> str:
    if env is not None and file is not None:
        raise CliError(
            "The value is to come from two places",
            fix="Use either --from-env or --from-file.",
            exit_code=Exit.USAGE,
        )
    if env is not None:
        return secret_from_env(env)
    if file is None and sys.stdin.isatty():
        from getpass import getpass  # noqa: PLC0415 - only where somebody types

        return getpass(f"Value of {name}: ")
    return secret_from_file(file or STDIN)
