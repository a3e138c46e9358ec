"""Workflows with more steps than Trunkline accepts: refused, while everyone else is served."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in
from trunkline.workflow.validate import MAX_STEPS

pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]


def workflow_of(steps: int) -> JsonObject:
    return {"name": "large", "steps": {f"s{number}": {"agent": f"A{number}"} for number in range(steps)}}


async def test_a_workflow_with_too_many_steps_is_refused(system: RunningSystem) -> None:
    for path in ("/workflow-validation", "/workflows"):
        answer = await system.call("POST", path, workflow_of(MAX_STEPS + 1))
        (finding,) = objects_in(answer.json["errors"])
        assert finding["path"] == "steps"
        assert "has 10,001 steps, more than 10,000" in str(finding["message"])


async def test_requests_that_take_long_wait_in_a_queue_of_limited_length(system: RunningSystem) -> None:
    answers = await asyncio.gather(
        *(system.call("POST", "/workflow-validation", workflow_of(500)) for _ in range(100))
    )
    statuses = [answer.status for answer in answers]
    refused = next(answer for answer in answers if answer.status == 503)
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 60
    assert refused.headers["retry-after"] == "2"
    assert refused.json["type"] == "urn:trunkline:problem:overloaded"
    assert (await system.call("POST", "/workflow-validation", workflow_of(1))).status == 200
