"""`trunkline up` and `trunkline serve`: the whole system in one process, or some of its roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.failures import explained
from trunkline.cli.inputs import Choice
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

    Prints the base URL, alone on one line of stdout, when it is ready to accept work. SIGTERM and Ctrl-C stop it
    gracefully. Each flag is also an environment variable (TRUNKLINE_PORT) and a key in trunkline.toml. The secrets
    TRUNKLINE_SECRET_KEY and TRUNKLINE_KAFKA_SASL_PASSWORD have no flag, because other processes can read the command
    line.
    """
    with explained():
        return wiring.run_up(flags.settings())


def serve(
    *,
    role: Annotated[list[Literal["api", "executor", "bridge"]], Parameter(negative=""), Choice],
    flags: SettingFlags = NO_FLAGS,
) -> int:
    """
    Run one or more roles in this process.

    Start as many processes of each role as you need, on any number of machines, with the same TRUNKLINE_STORE
    (PostgreSQL), TRUNKLINE_BROKER (Kafka) and TRUNKLINE_SECRET_KEY. Prints the base URL, alone on one line of stdout,
    when it is ready to accept work. A process without the API serves only /livez, /readyz and /metrics there. While
    the database or the broker is unavailable, the process waits, and stderr and /readyz say what it waits for.

    Parameters
    ----------
    role
        Role of this process. Can be repeated.
    """
    with explained():
        settings = flags.settings()
        if not settings.uses_kafka:
            raise ConfigurationError(
                "Roles in separate processes need PostgreSQL and Kafka.",
                fix="Set TRUNKLINE_STORE=postgresql://… and TRUNKLINE_BROKER=kafka://host:port, or run everything"
                " in one process: trunkline up.",
            )
        return wiring.run_roles(settings, frozenset(role))
