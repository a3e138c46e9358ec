"""`trunkline up` and `trunkline serve`: the whole system in one process, or some of its roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.failures import explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.setting_flags import NO_FLAGS, SettingFlags
from trunkline.errors import ConfigurationError

if TYPE_CHECKING:
    from trunkline import wiring
else:
    wiring = lazy_module("trunkline.wiring")


def up(*, flags: SettingFlags = NO_FLAGS) -> int:
    """
    Run everything in one process.

    Prints the base URL, alone on one line of stdout, when it is ready to take work. SIGTERM and Ctrl-C stop
    it gracefully. Each flag is also an environment variable (TRUNKLINE_PORT) and a key in trunkline.toml; secrets
    (TRUNKLINE_SECRET_KEY, TRUNKLINE_KAFKA_SASL_PASSWORD) are no flags, since a command line is no place for one.
    """
    with explained():
        return wiring.run_up(flags.settings())


def serve(
    *,
    role: Annotated[list[Literal["api", "executor", "bridge"]], Parameter(negative="")],
    flags: SettingFlags = NO_FLAGS,
) -> int:
    """
    Run some roles of the system in this process.

    Start as many processes of each role as you need, on as many machines, all with the same TRUNKLINE_STORE
    (PostgreSQL), TRUNKLINE_BROKER (Kafka) and TRUNKLINE_SECRET_KEY. Prints the base URL, alone on one line of
    stdout, when it is ready to take work; a process without the API answers /livez, /readyz and /metrics there.
    Until the database and the broker can be used it waits, and says on stderr and at /readyz for what.

    Parameters
    ----------
    role
        What this process does: api, executor, bridge. May be given several times.
    """
    with explained():
        settings = flags.settings()
        if not settings.uses_kafka:
            raise ConfigurationError(
                "Roles in processes of their own need PostgreSQL and Kafka between them.",
                fix="Set TRUNKLINE_STORE=postgresql://… and TRUNKLINE_BROKER=kafka://host:port, or run everything"
                " in one process: trunkline up.",
            )
        return wiring.run_roles(settings, frozenset(role))
