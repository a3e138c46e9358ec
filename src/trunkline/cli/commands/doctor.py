"""`trunkline doctor`: is this machine fit, and does the server answer?"""

from __future__ import annotations

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import Cell, print_json, print_table


def doctor(*, data: str | None = None, server: Server = HERE) -> int:
    """
    Check this machine and the server.

    Exits with 6 when the server does not answer, with 7 when another check fails.

    Parameters
    ----------
    data
        The data folder to look at. Default: the one that `up` would use here.
    """
    from trunkline.cli import checks  # noqa: PLC0415  (only this command needs them)

    with explained():
        from trunkline.settings import load_settings  # noqa: PLC0415  (heavy; few commands need it)

        settings = load_settings({} if data is None else {"data": data})
    local = [
        checks.check_python(),
        checks.check_sqlite(),
        checks.check_data_folder(settings.data),
        checks.check_key_file(settings.key_file),
    ]
    remote = checks.check_server(server.client())
    results = local + remote
    if server.json:
        print_json({"items": [check._asdict() for check in results], "next_cursor": None})
    else:
        rows = [
            [
                check.name,
                Cell("ok", "green") if check.ok else Cell("FAIL", "red"),
                check.found,
                "" if check.ok else check.fix,
            ]
            for check in results
        ]
        print_table(("CHECK", "RESULT", "FOUND", "FIX"), rows)
    if not all(check.ok for check in local):
        return Exit.INVALID
    return Exit.OK if all(check.ok for check in remote) else Exit.UNREACHABLE
