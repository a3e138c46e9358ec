"""
`trunkline secrets`: what workflows send to agents, by name.

A value is never an argument: every process on the machine can read the command line.
"""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import STDIN, secret_from_env, secret_from_file
from trunkline.cli.options import HERE, Cursor, LimitOrAll, Server
from trunkline.cli.rendering.output import note, note_next_page, print_json, print_table

NameArgument = Annotated[str, Parameter(name="NAME", help="Name of the secret in workflows.")]

app = App(
    name="secrets",
    help="Set, list and delete secrets that workflows use by name.",
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
    Create a secret or change its value.

    Refer to it in the input of a step as {"$secret": "NAME"}. The value is read from stdin or from a prompt, without
    the line ending. It must have 4 to 65536 characters, because shorter values cannot be redacted from records. A
    secret is never shown again. Steps use a new value within two seconds.

    Parameters
    ----------
    from_env
        Environment variable that contains the value.
    from_file
        File that contains the value.
    """
    kept = server.client().set_secret(name, _value(name, from_env, from_file))
    if server.json:
        print_json(kept)
    else:
        note(f"Created secret {name}" if kept["version"] == 1 else f"Changed secret {name}")
    return Exit.OK


@app.command(name="list")
def list_secrets(*, limit: LimitOrAll = None, cursor: Cursor = None, server: Server = HERE) -> int:
    """List the names of secrets. Values are never shown."""
    page = server.client().secrets(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [secret["name"], str(secret["version"]), secret["updated_at"], secret["created_at"]]
        for secret in page.items
    ]
    print_table(("SECRET", "VERSION", "CHANGED", "CREATED"), rows)
    if not rows:
        note("No secrets. Create one with: trunkline secrets set NAME")
    note_next_page(("secrets", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="delete")
def delete(name: NameArgument, /, *, server: Server = HERE) -> int:
    """
    Delete a secret permanently.

    Steps that need it fail before anything is sent to the agent.
    """
    server.client().delete_secret(name)
    if server.json:
        print_json({"deleted": name})
    else:
        note(f"Deleted secret {name}")
    return Exit.OK


# The verb of earlier versions.
app.command(delete, name="remove", show=False)


def _value(name: str, env: str | None, file: str | None) -> str:
    if env is not None and file is not None:
        raise CliError(
            "--from-env and --from-file cannot be combined",
            fix="Leave one of them out.",
            exit_code=Exit.USAGE,
        )
    if env is not None:
        return secret_from_env(env)
    if file is None and sys.stdin.isatty():
        from getpass import getpass  # noqa: PLC0415 - only for a prompt

        return getpass(f"Value of {name}: ")
    return secret_from_file(file or STDIN)
