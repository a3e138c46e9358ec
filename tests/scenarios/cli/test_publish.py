"""Publishing on the command line."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline, workflow
from tests.scenarios.publishing.a2a_caller import A2ACaller, text

from trunkline.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

__all__ = ["trunkline"]


async def status_of(url: object) -> int:
    async with aiohttp.ClientSession() as session, session.get(str(url)) as response:
        return response.status


async def test_an_agent_is_published_and_unpublished(trunkline: Trunkline, tmp_path: Path) -> None:
    await trunkline("agents", "create", "Front", "http://127.0.0.1:1/")
    published = (await trunkline("agents", "publish", "Front", "--json")).json
    assert str(published["url"]).endswith("/a2a/agents/Front")
    assert await status_of(published["card"]) == 200
    options = tmp_path / "options.yaml"
    options.write_text("name: Tide service\nversion: '2'\n")
    renamed = (await trunkline("agents", "publish", "Front", "--options", str(options), "--json")).json
    again = (await trunkline("agents", "publish", "Front", "--json")).json
    assert again == renamed
    assert renamed["publish"] == {"name": "Tide service", "version": "2"}
    options.write_text("name: Tides\n")
    replaced = (await trunkline("agents", "publish", "Front", "--options", str(options), "--json")).json
    assert replaced["publish"] == {"name": "Tides"}
    ended = await trunkline("agents", "unpublish", "Front")
    assert (ended.code, await status_of(published["card"])) == (0, 404)


async def test_a_workflow_is_published_in_a_new_version(trunkline: Trunkline) -> None:
    file = workflow("tides", "look_up: {agent: Front}  # by text")
    await trunkline("workflows", "apply", file)
    published = (await trunkline("workflows", "publish", "tides", "--json")).json
    again = (await trunkline("workflows", "publish", "tides", "--json")).json
    assert (published["version"], again) == (2, published)
    assert await status_of(published["card"]) == 200
    shown = (await trunkline("workflows", "show", "tides")).out
    assert "# by text" in shown
    ended = (await trunkline("workflows", "unpublish", "tides", "--json")).json
    assert (ended["version"], await status_of(published["card"])) == (3, 404)


async def test_push_configs_are_listed_enabled_and_deleted(trunkline: Trunkline) -> None:
    await trunkline("agents", "create", "Front", "http://127.0.0.1:1/", "--protocol", "a2a-1.0")
    published = (await trunkline("agents", "publish", "Front", "--json")).json
    caller = A2ACaller(str(published["url"]).partition("/a2a/")[0], "agents/Front")
    config: JsonObject = {"id": "mine", "url": "https://receiver.example/"}
    task = await caller.send(text("hi"), taskPushNotificationConfig=config, returnImmediately=True)
    run = str(task["id"])
    shown = (await trunkline("runs", "show", run)).out
    assert "A2A 1.0, as agents/Front" in shown
    assert "m-1: hi" in shown
    assert "receiver.example" in (await trunkline("runs", "push-configs", run)).out
    enabled = await trunkline("runs", "push-configs", run, "--enable", "mine")
    assert (enabled.code, "mine" in enabled.out) == (0, True)
    assert "mine" not in (await trunkline("runs", "push-configs", run, "--delete", "mine")).out
    gone = await trunkline("runs", "push-configs", run, "--delete", "mine")
    assert (gone.code, "has no push notification config mine" in gone.err) == (3, True)
