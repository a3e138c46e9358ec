"""
`trunkline secrets`: what workflows send to agents, by name.

A value is never an argument: every process on the machine can read the command line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import STDIN, secret_from_env, secret_from_file
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, STORE_HERE, Cursor, FileText, LimitOrAll, Server, StorePlace, Variable
from trunkline.cli.rendering.output import note, note_next_page, print_deleted, print_json, print_table
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    import asyncio

    from trunkline import wiring
    from trunkline.services.security import rekey as rekeying
    from trunkline.services.security import vault as vaults
    from trunkline.services.security.rekey import RekeyReport
else:
    asyncio = lazy_module("asyncio")
    rekeying = lazy_module("trunkline.services.security.rekey")
    vaults = lazy_module("trunkline.services.security.vault")
    wiring = lazy_module("trunkline.wiring")

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
    from_env: Variable = None,
    from_file: FileText = None,
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
        [
            secret["name"],
            str(secret["version"]),
            date_time(secret["updated_at"]),
            date_time(secret["created_at"]),
        ]
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
    print_deleted("secret", name, as_json=server.json)
    return Exit.OK


# The verb of earlier versions.
app.command(delete, name="remove", show=False)


@app.command(name="rekey")
def rekey(*, place: StorePlace = STORE_HERE) -> int:
    """
    Encrypt all stored secrets and credentials of agents with the current key.

    First put a new key before the old one in TRUNKLINE_SECRET_KEY or the key file, and restart every process. The
    command works directly on the store, while the system runs. If it is interrupted, run it again to continue. When
    it succeeds, the old key is no longer needed, and you can remove it.
    """
    settings = place.settings()

    async def work() -> RekeyReport:
        vault = vaults.Vault(*wiring.vault_keys(settings, make=False))
        async with wiring.open_store(settings, allow_in_use=True) as store:
            return await rekeying.Rekeying(store, vault, progress=_show_progress).run()

    with explained():
        report = asyncio.run(work())
    if report.unreadable:
        more = ", …" if report.unreadable > len(report.unreadable_names) else ""
        raise CliError(
            f"{report.unreadable} secrets cannot be decrypted with any of the keys: "
            f"{', '.join(report.unreadable_names)}{more}",
            fix="Add the key that encrypted them to TRUNKLINE_SECRET_KEY or the key file and run this again, or set "
            "them again.",
            exit_code=Exit.CONFLICT,
        )
    if report.left:
        raise CliError(
            f"{report.left} secrets were encrypted with another key while this command ran",
            fix="Restart every process with the new key first, then run this again.",
            exit_code=Exit.CONFLICT,
        )
    if place.json:
        print_json({"key_id": report.key_id, "secrets": report.checked, "rekeyed": report.rekeyed})
    else:
        stored = f"All {report.checked} secrets" if report.checked else "No secrets are stored. New ones"
        note(f"{stored} are encrypted with the key {report.key_id}. You can remove the other keys.")
    return Exit.OK


def _show_progress(report: RekeyReport) -> None:
    note(f"{report.checked} secrets checked, {report.rekeyed} encrypted again")


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
