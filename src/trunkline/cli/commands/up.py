"""`trunkline up`: the API, the executor and the bridge in one process, on SQLite."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.failures import explained

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]


def up(
    *,
    host: str | None = None,
    port: int | None = None,
    data: str | None = None,
    store: str | None = None,
    broker: str | None = None,
    allowed_networks: str | None = None,
    max_answer_bytes: int | None = None,
    max_body_bytes: int | None = None,
    retention: str | None = None,
    stop_timeout: str | None = None,
    log_level: LogLevel | None = None,
    log_format: LogFormat | None = None,
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """
    Run everything in one process.

    Prints the base URL, alone on one line of stdout, when it is ready to take work. SIGTERM and Ctrl-C stop
    it gracefully. Each flag is also an environment variable (TRUNKLINE_PORT) and a key in trunkline.toml; the
    key that protects secrets is TRUNKLINE_SECRET_KEY alone, since a command line is no place for one.

    Parameters
    ----------
    host
        The address to listen on. Default: 127.0.0.1.
    port
        The port to listen on; 0 takes a free one. Default: 8000.
    data
        The folder of the database and the key file. Default: ./trunkline-data.
    store
        sqlite:///relative or sqlite:////absolute. Default: in the data folder.
    broker
        How tasks travel. Default: memory://.
    allowed_networks
        Networks (CIDR) or host names that agents may have beside public ones, separated by commas.
    max_answer_bytes
        The longest answer that is taken from an agent.
    max_body_bytes
        The longest request that is taken.
    retention
        How long finished runs are kept, like 12h or 30d; 0s keeps them.
    stop_timeout
        How long calls may take to end when it is stopped, like 30s.
    log_level
        The least severe messages that are logged, on stderr.
    log_format
        How log lines look: json for programs, console for people.
    json
        Log lines as JSON, like --log-format json.
    """
    flags: dict[str, object] = {
        "host": host,
        "port": port,
        "data": data,
        "store": store,
        "broker": broker,
        "allowed_networks": allowed_networks,
        "max_answer_bytes": max_answer_bytes,
        "max_body_bytes": max_body_bytes,
        "retention": retention,
        "stop_timeout": stop_timeout,
        "log_level": log_level,
        "log_format": log_format or ("json" if json else None),
    }
    with explained():
        from trunkline.settings import load_settings  # noqa: PLC0415  (heavy; few commands need it)
        from trunkline.wiring import run_embedded  # noqa: PLC0415

        settings = load_settings({name: value for name, value in flags.items() if value is not None})
        return run_embedded(settings)
