"""Which addresses a system may call by default, and that it says so when it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import JsonObject
from trunkline.telemetry import log_events
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.testing.system import error_of

# A system that is not alone allows nothing by itself.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


@pytest.mark.parametrize(
    ("listed", "said", "is_private_allowed"),
    [
        ("", "loopback, private networks", True),
        ("fd00:7::/64,agents.internal", "loopback, fd00:7::/64, agents.internal", False),
    ],
)
async def test_the_start_logs_which_addresses_are_allowed_besides_public_ones(
    tmp_path: Path, listed: str, said: str, is_private_allowed: bool
) -> None:
    with capture_logs() as lines:
        async with (
            running_system(tmp_path, allowed_networks=listed) as system,
            ScriptedAgent(simple_success("ok")) as agent,
        ):
            for name, url in {
                "Here": agent.url,
                "Private": "http://[fd00:8::1]:9/",
                "Metadata": "http://169.254.169.254/",
            }.items():
                await system.register(name, url, protocol="simple-a2a", timeout_ms=2_000)
                step: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
                await system.save({"name": name.lower(), "steps": {"only": step}})
            assert (await system.run("here"))["status"] == "COMPLETED"
            private = error_of(await system.run("private"))["code"]
            assert (private != "agent_address_forbidden") == is_private_allowed
            assert error_of(await system.run("metadata"))["code"] == "agent_address_forbidden"
    allowed = [line for line in lines if line["event"] == log_events.ADDRESSES_ALLOWED]
    assert [(line["networks"], line["beside_public_ones"]) for line in allowed] == [(said, said)]
