"""What every test can ask for."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from tests import services

# A shell starts a command in the background with Ctrl-C switched off, and so would every program that a test starts
# inherit it: those that test Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no finding, and a test that fails fails again. `make fuzz` is where chance belongs.
settings.register_profile(
    "unhurried", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    # Its fixtures: kafka_servers, topics, postgres_url and so on.
    config.pluginmanager.register(services, "services")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and all that they import stay to the end: no search for garbage goes through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def own_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test makes known to its process as a profile is forgotten after it."""
    from trunkline.protocols.zone.params_profiles import known_profiles  # noqa: PLC0415 - few tests need it

    monkeypatch.setattr("trunkline.protocols.zone.params_profiles._profiles", dict(known_profiles()))


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    # The loop that the program itself runs on.
    return "asyncio", {"use_uvloop": True}
