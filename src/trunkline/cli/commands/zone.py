"""`trunkline zone`: serve a zone of the JSON-RPC contract, and list the calls it rejected."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import FileText, Flag, FolderText, JsonFlag, Limit
from trunkline.cli.rendering.output import note, print_json, print_table
from trunkline.cli.rendering.times import date_time
from trunkline.cli.setting_flags import LogFormat, LogLevel

if TYPE_CHECKING:
    from trunkline import clock, settings, zones
    from trunkline.services.agents import protocol_profiles
    from trunkline.settings import Settings
    from trunkline.stores.zones import RefusedCall
    from trunkline.telemetry import logs
    from trunkline.zones import Zone
    from trunkline.zones.access import audit as zone_audit
    from trunkline.zones.access import policy_file
    from trunkline.zones.serving import http_server as zone_server
    from trunkline.zones.serving import stdio as zone_stdio
else:
    clock = lazy_module("trunkline.clock")
    settings = lazy_module("trunkline.settings")
    zones = lazy_module("trunkline.zones")
    zone_audit = lazy_module("trunkline.zones.access.audit")
    protocol_profiles = lazy_module("trunkline.services.agents.protocol_profiles")
    logs = lazy_module("trunkline.telemetry.logs")
    zone_stdio = lazy_module("trunkline.zones.serving.stdio")
    zone_server = lazy_module("trunkline.zones.serving.http_server")
    policy_file = lazy_module("trunkline.zones.access.policy_file")

_EXAMPLE = "Name it as module:attribute, such as execution:zone for `zone = Zone(…)` in execution.py."
DEFAULT_LIMIT = 50

app = App(
    name="zone", help="Serve a zone: Python functions as JSON-RPC methods at one URL.", version_flags=[]
)


@app.command(name="serve")
def serve(
    zone: Annotated[str, Parameter(name="MODULE:ZONE")],
    /,
    *,
    host: str | None = None,
    port: int | None = None,
    data: FolderText = None,
    policy: Annotated[FileText, Parameter(env_var="TRUNKLINE_ZONE_POLICY")] = None,
    tls_cert: Annotated[FileText, Parameter(env_var="TRUNKLINE_ZONE_TLS_CERT")] = None,
    tls_key: Annotated[FileText, Parameter(env_var="TRUNKLINE_ZONE_TLS_KEY")] = None,
    client_ca: Annotated[FileText, Parameter(env_var="TRUNKLINE_ZONE_CLIENT_CA")] = None,
    open_: Annotated[Flag, Parameter(name="--open")] = False,
    stdio: Flag = False,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> int:
    """
    Serve a zone.

    Prints its URL, alone on one line of stdout, when it is ready to accept calls. Callers send POST requests to it.
    SIGTERM and Ctrl-C stop it gracefully. Work in progress is stored in the data folder and continues after a restart.

    Parameters
    ----------
    zone
        Module and attribute of the zone, such as execution:zone for `zone = Zone(…)` in execution.py.
    host
        Address to listen on. Default: 127.0.0.1.
    port
        Port to listen on. 0 picks a free port. Default: 8000.
    data
        Folder of the state that survives a restart. Default: the zone's own folder, or ./trunkline-data.
    policy
        TOML or JSON file that says who can call which methods.
    tls_cert
        Certificate of the zone, as a PEM file. The zone then uses TLS.
    tls_key
        Private key of the certificate, if its file does not contain it.
    client_ca
        PEM file of certificate authorities. Callers without an API key in the policy need a client certificate.
    open_
        Listen on any address without authentication, if a proxy in front of the zone authenticates callers.
    stdio
        Serve the parent process instead of a URL: one request per line on stdin, one response per line on stdout.
    log_level
        Lowest level of messages to log, on stderr.
    log_format
        Format of log lines: json for programs, console for people.
    """
    with explained():
        if stdio:
            _check_no_address(host, port, tls_cert, tls_key, client_ca, open_)
        loaded = _settings(host=host, port=port, data=data, log_level=log_level, log_format=log_format)
        logs.configure_logs(loaded.log_level, loaded.log_format)
        # Before the module is imported: it may print something.
        pipes = zone_stdio.take_pipes() if stdio else None
        protocol_profiles.load_profiles(loaded.profiles)
        # The first line on stdout is the URL, whatever the module prints.
        with redirect_stdout(sys.stderr):
            found = find_zone(zone)
        if policy is not None:
            found.policy = policy_file.load_policy(Path(policy))
        secret_key = None if loaded.secret_key is None else loaded.secret_key.get_secret_value()
        if pipes is not None:
            return zone_stdio.run_zone_on_stdio(found, pipes, _data(loaded, found), secret_key)
        return zone_server.run_zone(
            found,
            zone_server.ZoneServerOptions(
                host=loaded.host,
                port=loaded.port,
                data=_data(loaded, found),
                secret_key=secret_key,
                certificate=_path(tls_cert),
                key=_path(tls_key),
                client_ca=_path(client_ca),
                is_open=open_,
                is_loopback=settings.is_loopback(loaded.host),
            ),
        )


def find_zone(name: str) -> Zone:
    """Imports the module and takes the zone out of it; what the module itself raises is shown as it is."""
    module_name, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise CliError(f"{name} is not of the form module:attribute.", fix=_EXAMPLE, exit_code=Exit.USAGE)
    # As `python -m` does: a module in the folder that the command is called in.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as exc:
        # A module that it imports itself may be missing, which is a different error.
        if exc.name is None or not f"{module_name}.".startswith(f"{exc.name}."):
            raise
        raise CliError(
            f"Module {module_name} is neither in {Path.cwd()} nor installed.",
            fix=_EXAMPLE,
            exit_code=Exit.NOT_FOUND,
        ) from exc
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise CliError(
                f"The module {module_name} has no {attribute}.", fix=_EXAMPLE, exit_code=Exit.NOT_FOUND
            )
        found = getattr(found, part)
    if not isinstance(found, zones.Zone):
        raise CliError(
            f"{name} is of the type {type(found).__name__}, not Zone.", fix=_EXAMPLE, exit_code=Exit.INVALID
        )
    return found


@app.command(name="audit")
def audit(
    *,
    data: FolderText = None,
    limit: Limit = DEFAULT_LIMIT,
    json: JsonFlag = False,
) -> int:
    """
    List calls that a zone rejected, newest first.

    The zone can be running. It keeps the newest 10,000 rejected calls, without their params and tokens.

    Parameters
    ----------
    data
        Data folder of the zone. Default: ./trunkline-data.
    """
    with explained():
        folder = settings.load_settings({} if data is None else {"data": data}).data
        found = zone_audit.newest_refusals(Path(folder), limit)
    shown = [
        _shown(refusal, clock.rfc3339(refusal.at), zone_audit.explain_reason(refusal.reason))
        for refusal in found
    ]
    if json:
        print_json({"items": shown, "next_cursor": None})
        return Exit.OK
    rows = [
        [date_time(one["at"]), *(one[name] or "" for name in ("caller", "method", "reason", "detail"))]
        for one in shown
    ]
    print_table(("TIME", "CALLER", "METHOD", "REASON", "DETAIL"), rows)
    if not rows:
        note("No rejected calls.")
    return Exit.OK


def _check_no_address(*flags: object) -> None:
    if any(flag is not None and flag is not False for flag in flags):
        raise CliError(
            "--stdio cannot be combined with --host, --port, --open or certificates.",
            fix="Leave them out, or leave out --stdio.",
            exit_code=Exit.USAGE,
        )


def _settings(**flags: object) -> Settings:
    return settings.load_settings({name: value for name, value in flags.items() if value is not None})


def _data(loaded: Settings, zone: Zone) -> Path:
    """What the operator says comes before what the zone's author has said, and that before the default."""
    if zone.data is None or "data" in loaded.model_fields_set:
        return loaded.data
    return Path(zone.data)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _shown(refusal: RefusedCall, at: str, detail: str) -> dict[str, str | None]:
    return {
        "at": at,
        "caller": refusal.caller,
        "method": refusal.method,
        "correlation_id": refusal.correlation_id,
        "reason": refusal.reason,
        "detail": detail,
    }
