"""`trunkline zone serve`: the zone in a module of the user's, from the folder that the command is called in."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.options import Flag
from trunkline.cli.setting_flags import LogFormat, LogLevel

if TYPE_CHECKING:
    from trunkline.settings import Settings
    from trunkline.zones import Zone

_EXAMPLE = "Name it as module:attribute, e.g. execution:zone for `zone = Zone(…)` in execution.py."


def serve(
    zone: Annotated[str, Parameter(name="MODULE:ZONE")],
    /,
    *,
    host: str | None = None,
    port: int | None = None,
    data: str | None = None,
    policy: Annotated[str | None, Parameter(env_var="TRUNKLINE_ZONE_POLICY")] = None,
    tls_cert: Annotated[str | None, Parameter(env_var="TRUNKLINE_ZONE_TLS_CERT")] = None,
    tls_key: Annotated[str | None, Parameter(env_var="TRUNKLINE_ZONE_TLS_KEY")] = None,
    client_ca: Annotated[str | None, Parameter(env_var="TRUNKLINE_ZONE_CLIENT_CA")] = None,
    open_: Annotated[Flag, Parameter(name="--open")] = False,
    stdio: Flag = False,
    log_level: LogLevel | None = None,
    log_format: LogFormat | None = None,
) -> int:
    """
    Serve a zone: functions of yours behind one address.

    Prints its URL, alone on one line of stdout, when it is ready to take calls: POST them to that URL. SIGTERM and
    Ctrl-C stop it gracefully. Work that goes on is in the data folder and survives both.

    Parameters
    ----------
    zone
        Where it is, e.g. execution:zone for `zone = Zone(…)` in execution.py of this folder.
    host
        The address to listen on. Default: 127.0.0.1.
    port
        The port to listen on; 0 takes a free one. Default: 8000.
    data
        The folder of what must survive a restart. Default: the zone's own, or ./trunkline-data.
    policy
        A file that says who may call what: TOML or JSON.
    tls_cert
        The zone's certificate, PEM; it is then served over https.
    tls_key
        The key of that certificate. Default: it is in the same file.
    client_ca
        Callers must show a certificate that one of these has signed, PEM; not those whom the policy knows by a key.
    open_
        Listen on any address although the zone does not ask who calls: something in front of it does.
    stdio
        Serve whoever has started it instead of an address: a request is a line on stdin, its answer one on stdout.
        It ends with its input.
    log_level
        The least severe messages that are logged, on stderr.
    log_format
        How log lines look: json for programs, console for people.
    """
    with explained():
        if stdio:
            _check_no_address(host, port, tls_cert, tls_key, client_ca, open_)
        settings = _settings(host=host, port=port, data=data, log_level=log_level, log_format=log_format)
        from trunkline.services.profile_folder import load_profiles  # noqa: PLC0415  (heavy; few commands need it)
        from trunkline.telemetry.logs import configure_logs  # noqa: PLC0415  (as above)
        from trunkline.zones.lines import run_zone_on_pipes, take_pipes  # noqa: PLC0415  (as above)
        from trunkline.zones.server import Place, run_zone  # noqa: PLC0415  (as above)

        configure_logs(settings.log_level, settings.log_format)
        # Before the module is imported: it may print something.
        pipes = take_pipes() if stdio else None
        load_profiles(settings.profiles)
        # The first line on stdout is the URL, whatever the module prints.
        with redirect_stdout(sys.stderr):
            found = find_zone(zone)
        if policy is not None:
            from trunkline.zones.policy_form import load_policy  # noqa: PLC0415  (as above)

            found.policy = load_policy(Path(policy))
        secret_key = None if settings.secret_key is None else settings.secret_key.get_secret_value()
        if pipes is not None:
            return run_zone_on_pipes(found, pipes, _data(settings, found), secret_key)
        return run_zone(
            found,
            Place(
                host=settings.host,
                port=settings.port,
                data=_data(settings, found),
                secret_key=secret_key,
                certificate=_path(tls_cert),
                key=_path(tls_key),
                client_ca=_path(client_ca),
                is_open=open_,
                is_loopback=_is_loopback(settings.host),
            ),
        )


def find_zone(name: str) -> Zone:
    """Imports the module and takes the zone out of it; what the module itself raises is shown as it is."""
    from trunkline.zones import Zone  # noqa: PLC0415  (heavy; few commands need it)

    module_name, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise CliError(f"{name} does not name a zone.", fix=_EXAMPLE, exit_code=Exit.USAGE)
    # As `python -m` does: a module in the folder that the command is called in.
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as exc:
        # What one of its own imports lacks is no mistake of whoever named it.
        if exc.name is None or not f"{module_name}.".startswith(f"{exc.name}."):
            raise
        raise CliError(
            f"There is no module {module_name} in {Path.cwd()} or among the installed ones.",
            fix=_EXAMPLE,
            exit_code=Exit.NOT_FOUND,
        ) from exc
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise CliError(
                f"The module {module_name} has no {attribute}.", fix=_EXAMPLE, exit_code=Exit.NOT_FOUND
            )
        found = getattr(found, part)
    if not isinstance(found, Zone):
        raise CliError(
            f"{name} is no Zone but of the type {type(found).__name__}.", fix=_EXAMPLE, exit_code=Exit.INVALID
        )
    return found


def _check_no_address(*flags: object) -> None:
    if any(flag is not None and flag is not False for flag in flags):
        raise CliError(
            "With --stdio a zone has no address: --host, --port, --open and the certificates mean nothing.",
            fix="Leave them out, or --stdio.",
            exit_code=Exit.USAGE,
        )


def _settings(**flags: object) -> Settings:
    from trunkline.settings import load_settings  # noqa: PLC0415  (heavy; few commands need it)

    return load_settings({name: value for name, value in flags.items() if value is not None})


def _data(settings: Settings, zone: Zone) -> Path:
    """What the operator says comes before what the zone's author has said, and that before the default."""
    if zone.data is None or "data" in settings.model_fields_set:
        return settings.data
    return Path(zone.data)


def _is_loopback(host: str) -> bool:
    from trunkline.settings import is_loopback  # noqa: PLC0415  (as above)

    return is_loopback(host)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
