"""Webhooks: signed requests of other systems start runs, each delivery once."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

import pytest
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system

from trunkline.jsontypes import JsonObject, encode
from trunkline.testing import Answer, RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import objects_in
from trunkline.triggers.signatures import standard_signature

pytestmark = pytest.mark.anyio

SECRET = "a-secret-of-github"
WORKFLOW = "{name: review, steps: {work: {agent: A, input: '${ input }'}}, output: '${ steps.work.output }'}"
GITHUB: JsonObject = {
    "name": "pr",
    "workflow": "review",
    "input": {"number": "${ request.body.number }", "event": "${ request.headers['x-github-event'] }"},
    "webhook": {
        "verify": {"scheme": "github", "secret": "hub"},
        "filter": "request.body.action == 'opened'",
    },
}


@pytest.fixture
async def ready(system: RunningSystem) -> AsyncGenerator[RunningSystem]:
    async with ScriptedAgent(simple_success({"text": "looks good"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        assert (await system.call("PUT", "/secrets/hub", {"value": SECRET})).status == 201
        yield system


async def hook(system: RunningSystem, trigger: JsonObject) -> str:
    """Its address."""
    created = await system.call("POST", "/triggers", trigger)
    assert created.status == 201, created.body
    webhook = created.json["webhook"]
    assert isinstance(webhook, dict)
    assert str(webhook["url"]).startswith("/hooks/triggers/")
    return f"/{webhook['url']}"


async def deliver(
    system: RunningSystem, url: str, body: JsonObject, *, delivery: str, secret: str = SECRET
) -> Answer:
    content = encode(body)
    headers = {
        "X-Hub-Signature-256": f"sha256={hmac.new(secret.encode(), content, sha256).hexdigest()}",
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": "pull_request",
    }
    return await system.call("POST", url, content, headers)


async def test_a_signed_delivery_starts_one_run_however_often_it_comes(ready: RunningSystem) -> None:
    url = await hook(ready, GITHUB)
    body: JsonObject = {"action": "opened", "number": 7}
    answers = await asyncio.gather(*(deliver(ready, url, body, delivery="d-1") for _ in range(5)))
    assert {answer.status for answer in answers} == {202}
    run_ids = {str(answer.json["id"]) for answer in answers}
    assert len(run_ids) == 1
    run_id = run_ids.pop()
    run = await ready.wait_for(run_id)
    assert run["input"] == {"number": 7, "event": "pull_request"}
    assert (run["status"], run["trigger"], run["started_by"]) == ("COMPLETED", "pr", "trigger:pr")
    other = await deliver(ready, url, body, delivery="d-2")
    assert other.json["id"] != run_id
    firings = await ready.items("/triggers/pr/firings")
    assert [firing["outcome"] for firing in firings] == ["started", "started"]


async def test_what_is_not_signed_is_refused_and_starts_nothing(ready: RunningSystem) -> None:
    url = await hook(ready, GITHUB)
    body: JsonObject = {"action": "opened", "number": 7}
    assert (await deliver(ready, url, body, delivery="d", secret="wrong")).status == 401
    assert (await ready.call("POST", url, body)).status == 401
    assert (await ready.call("POST", f"{url[:-1]}{'A' if url[-1] != 'A' else 'B'}", body)).status == 404
    assert (await ready.call("POST", "//hooks/triggers/x", body)).status == 404
    assert await ready.items("/runs") == []
    assert await ready.items("/triggers/pr/firings") == []


async def test_a_filter_and_a_pause_keep_deliveries_from_starting_runs(ready: RunningSystem) -> None:
    url = await hook(ready, GITHUB)
    assert (await deliver(ready, url, {"action": "closed"}, delivery="1")).json["id"] is None
    assert (await deliver(ready, url, {"zen": "no action"}, delivery="2")).json["id"] is None
    failed = await deliver(ready, url, {"action": "opened"}, delivery="3")
    assert failed.status == 422
    assert (await ready.call("POST", "/triggers/pr/pause")).status == 200
    assert (await deliver(ready, url, {"action": "opened", "number": 1}, delivery="4")).status == 409
    found = await ready.items("/triggers/pr/firings")
    assert [firing["outcome"] for firing in found] == ["failed", "filtered", "filtered"]
    assert "has no key" in str(found[1]["reason"])
    assert await ready.items("/runs") == []


async def test_a_webhook_can_answer_with_the_output_of_its_run(ready: RunningSystem) -> None:
    url = await hook(
        ready,
        {
            "name": "sync",
            "workflow": "review",
            "input": "${ request }",
            "webhook": {"verify": {"scheme": "none"}, "respond": "output"},
        },
    )
    answer = await ready.call(
        "POST", f"{url}?a=1", b"plain text", {"Authorization": "Bearer hidden", "X-B": "2"}
    )
    assert (answer.status, answer.json["text"]) == (200, "looks good")
    (run,) = await ready.items("/runs?payloads=true")
    request = run["input"]
    assert isinstance(request, dict)
    assert (request["query"], request["body"]) == ({"a": "1"}, "plain text")
    headers = request["headers"]
    assert isinstance(headers, dict)
    assert headers["x-b"] == "2"
    assert "authorization" not in headers


async def test_slack_gets_its_challenge_only_for_a_signed_request(ready: RunningSystem) -> None:
    trigger: JsonObject = {"verify": {"scheme": "slack", "secret": "hub"}}
    url = await hook(ready, {"name": "s", "workflow": "review", "webhook": trigger})
    content = encode({"type": "url_verification", "challenge": "c-1"})
    now = str(int(time.time()))
    signature = hmac.new(SECRET.encode(), f"v0:{now}:".encode() + content, sha256).hexdigest()
    headers = {"X-Slack-Request-Timestamp": now, "X-Slack-Signature": f"v0={signature}"}
    assert (await ready.call("POST", url, content, headers)).json == {"challenge": "c-1"}
    assert (await ready.call("POST", url, content)).status == 401
    assert await ready.items("/runs") == []


async def test_two_secrets_are_accepted_during_a_rotation(ready: RunningSystem) -> None:
    assert (await ready.call("PUT", "/secrets/new", {"value": "whsec_bmV3LXNlY3JldA=="})).status == 201
    trigger: JsonObject = {"verify": {"scheme": "standard-webhooks", "secret": ["hub", "new"]}}
    url = await hook(ready, {"name": "r", "workflow": "review", "webhook": trigger})
    now = int(time.time())
    runs: set[str] = set()
    for number, secret in enumerate((SECRET, "whsec_bmV3LXNlY3JldA==", "whsec_bmV3LXNlY3JldA==")):
        message = f"m-{min(number, 1)}"
        headers = {
            "webhook-id": message,
            "webhook-timestamp": str(now),
            "webhook-signature": standard_signature(secret, message, now, b"{}"),
        }
        answer = await ready.call("POST", url, b"{}", headers)
        assert answer.status == 202, answer.body
        runs.add(str(answer.json["id"]))
    assert len(runs) == 2


async def test_a_webhook_has_limits(ready: RunningSystem) -> None:
    limits: JsonObject = {"verify": {"scheme": "none"}, "rate": "2/h", "max_body_bytes": 10}
    url = await hook(ready, {"name": "l", "workflow": "review", "webhook": limits})
    assert (await ready.call("POST", url, b"x" * 11)).status == 413
    assert (await ready.call("POST", url, b"{}")).status == 202
    refused = await ready.call("POST", url, b"{}")
    assert refused.status == 429
    assert refused.headers["Retry-After"]


async def test_a_wrong_webhook_is_refused_with_line_and_column(ready: RunningSystem) -> None:
    text = (
        b"name: a\nworkflow: review\nwebhook:\n  verify: {scheme: githb}\n  filter: request.body.x ==\n"
        b"  rate: often\n"
    )
    found = objects_in((await ready.call("POST", "/triggers", text)).json["errors"])
    places = [(finding["path"], finding["line"], finding["column"]) for finding in found]
    assert ("webhook.verify.scheme", 4, 20) in places
    assert ("webhook.rate", 6, 9) in places
    text = text.replace(b"githb", b"none").replace(b"often", b"9/s")
    (finding,) = objects_in((await ready.call("POST", "/triggers", text)).json["errors"])
    assert (finding["path"], finding["line"]) == ("webhook.filter", 5)


@pytest.mark.embedded_only
async def test_the_address_needs_no_key_and_a_viewer_does_not_see_it(tmp_path: Path) -> None:
    admin, viewer = await create_key(tmp_path, "admin", "ann"), await create_key(tmp_path, "viewer", "vic")
    async with guarded_system(tmp_path) as system:
        saved = await system.call("POST", "/workflows", b"{name: w, steps: {a: {agent: A}}}", bearer(admin))
        assert saved.status == 201
        body: JsonObject = {"name": "h", "workflow": "w", "webhook": {"verify": {"scheme": "none"}}}
        created = await system.call("POST", "/triggers", body, bearer(admin))
        webhook = created.json["webhook"]
        assert isinstance(webhook, dict)
        assert (await system.call("POST", f"/{webhook['url']}", {})).status == 202
        seen = (await system.call("GET", "/triggers/h", headers=bearer(viewer))).json["webhook"]
        assert isinstance(seen, dict)
        assert seen["url"] is None
