"""`trunkline up`: the API, the executor and the bridge in one process."""

from __future__ import annotations

from trunkline.cli.failures import explained
from trunkline.cli.setting_flags import NO_FLAGS, SettingFlags


def up(*, flags: SettingFlags = NO_FLAGS) -> int:
    """
    Run everything in one process.

    Prints the base URL, alone on one line of stdout, when it is ready to take work. SIGTERM and Ctrl-C stop
    it gracefully. Each flag is also an environment variable (TRUNKLINE_PORT) and a key in trunkline.toml; secrets
    (TRUNKLINE_SECRET_KEY, TRUNKLINE_KAFKA_SASL_PASSWORD) are no flags, since a command line is no place for one.
    """
    with explained():
        from trunkline.wiring import run_up  # noqa: PLC0415  (heavy; few commands need it)

        return run_up(flags.settings())
