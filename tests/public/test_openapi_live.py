"""
The running server keeps every promise of its OpenAPI document, whatever schemathesis thinks of sending.

TRUNKLINE_API_EXAMPLES lets it think of more (`make fuzz-api`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, running_system, simple_success

# Drawn for each operation, in addition to those that follow from the document itself.
EXAMPLES = int(os.environ.get("TRUNKLINE_API_EXAMPLES", "6"))

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600 + 10 * EXAMPLES)]

WORKFLOW = """
name: probe
steps:
  answers: {agent: Answers}
  asks: {agent: Asks}
"""

# Which statuses are a yes or a no, beyond what the checks assume:
#   404, 409, 412  what was made up does not exist, or the state does not allow it, however well-formed
#   422            where more is asked of a body than a schema can say: an expression compiles, a step exists,
#                  max_delay is not below first_delay, auth_config goes with auth_type, the input fits the workflow,
#                  a key expires in the future, an event's key comes with its type, names and labels have no control
#                  characters, a comment answers a human task, an address can be called, two filters exclude one
#                  another, a bulk operation names what it changes, a definition can be published with these options
CONFIG = """
[parameters]
"path.workflow" = "probe"
"path.run" = "{run}"
"path.step" = "asks"
"query.wait" = "0"
# Otherwise the response does not end.
"query.follow" = "false"

[generation]
# A query or header that nobody has heard of is ignored, as everywhere on the web.
allow-extra-parameters = false

[checks.positive_data_acceptance]
expected-statuses = ["2xx", 404, 409, 412]

[checks.negative_data_rejection]
expected-statuses = [400, 404, 405, 409, 412, 413, 422]

[[operations]]
include-operation-id = [
  "create_agent", "replace_agent", "patch_agent", "save_workflow", "execute_workflow", "retry_run",
  "migration_ready", "migration_shadow", "migration_canary", "migration_cutover", "migration_cutover_all",
  "check_migration", "check_agent", "create_trigger", "save_trigger", "fire_trigger", "backfill_trigger",
  "preview_schedule", "validate_trigger", "list_events", "send_event", "signal_run", "create_key",
  "change_run", "reply_to_step",
  "create_subscription", "save_subscription", "create_answer_link", "start_bulk_operation",
  "publish_workflow"
]
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 412, 422]

[[operations]]
# 403: without a key, nobody knows whose items are mine. 422: filters exclude one another.
include-operation-id = ["list_inbox"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 403, 409, 412, 422]

[[operations]]
# A stream without an end: there is nothing to wait for.
include-operation-id = ["watch_runs"]
enabled = false

[[operations]]
# 502: the agents that are made up here cannot be reached, and that is the answer.
include-operation-id = ["refresh_agent"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 502]
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 502]
"""


async def waiting_run(system: RunningSystem, answers: ScriptedAgent, asks: ScriptedAgent) -> str:
    """A run that has something to show behind each of its addresses."""
    await system.register("Answers", answers.url, protocol="simple-a2a")
    await system.register("Asks", asks.url, protocol="jsonrpc-2.0")
    await system.save(WORKFLOW)
    run_id = await system.start("probe", {"query": "anybody there?"})
    await system.wait_for(run_id, {"WAITING"})
    return run_id


async def schemathesis(url: str, config: Path) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        "--config-file", str(config), "run", f"{url}/openapi.json",
        "--max-examples", str(EXAMPLES), "--seed", "20260301", "--request-timeout", "30", "--no-color",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=config.parent,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_the_server_does_what_its_description_says(tmp_path: Path) -> None:
    async with (
        running_system(tmp_path / "data") as system,
        ScriptedAgent(simple_success({"text": "here"})) as answers,
        ScriptedAgent(jsonrpc_task("which one?", state="input-required")) as asks,
    ):
        config = tmp_path / "schemathesis.toml"
        config.write_text(CONFIG.format(run=await waiting_run(system, answers, asks)))
        code, output = await schemathesis(system.url, config)
    assert code == 0, output
