"""Subscriptions that people read: mail over a real server, Slack, Teams, and the answer links in them."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path

import pytest
from tests.certificates import made
from tests.scenarios.event_receiver import event_receiver
from tests.scenarios.mail_server import MailServer, mail_server
from tests.scenarios.test_answer_links import send
from tests.scenarios.test_human_tasks import ask, asking

from trunkline.jsontypes import Json, JsonObject
from trunkline.mail_settings import MailSettings
from trunkline.testing import RunningSystem, running_system
from trunkline.transports.smtp import SmtpClient, SmtpError, SmtpServer

pytestmark = pytest.mark.anyio

FAILING: JsonObject = {"name": "failing", "steps": {"bad": {"set": {"x": "${ input.missing.deep }"}}}}
_NONE = "left out"
PUBLIC = "https://trunkline.example"


@asynccontextmanager
async def mailing_system(folder: Path, server: MailServer, **fields: object) -> AsyncGenerator[RunningSystem]:
    settings = {
        "host": "127.0.0.1",
        "port": server.port,
        "sender": "trunkline@example.com",
        "tls": "none",
        **fields,
    }
    mail = MailSettings(**settings)  # pyright: ignore[reportArgumentType] - of the test
    async with running_system(folder / "data", mail=mail, public_url=PUBLIC) as system:
        yield system


async def subscribe(system: RunningSystem, **fields: Json) -> None:
    answer = await system.call("POST", "/subscriptions", {"name": "people", **fields})
    assert answer.status == 201, answer.body


async def test_a_failed_run_is_reported_by_mail_and_tried_until_the_server_accepts_it(tmp_path: Path) -> None:
    async with mail_server() as server, mailing_system(tmp_path, server) as system:
        server.answer = lambda number: "451 Try later" if number < 3 else "250 OK"
        await system.save(FAILING)
        await subscribe(system, mail=["ops@example.com"], types=["run.failed"])
        run_id = await system.start("failing", {})
        [mail] = await server.accepts(1)
        assert (mail.sender, mail.recipients) == ("trunkline@example.com", ["ops@example.com"])
        assert mail.message["Subject"] == "[Trunkline] Run of failing failed"
        assert f"{PUBLIC}/runs/{run_id}" in mail.text
        assert server.attempts == 3


async def test_each_assignee_gets_a_mail_with_a_link_of_their_own(tmp_path: Path) -> None:
    addresses = {"ada": "ada@example.com", "bob": "bob@other.example"}
    async with (
        mail_server() as server,
        mailing_system(tmp_path, server, addresses=addresses, domains=("example.com",)) as system,
    ):
        await subscribe(
            system, mail=["assignees", "ops@example.com"], types=["question.asked"], answer_links=True
        )
        run_id = await ask(system, asking("both", assignees=["ada", "bob"], options=["yes"]))
        mails = {mail.recipients[0]: mail.text for mail in await server.accepts(2)}
        # Bob's domain is not among those that mail may be sent to.
        assert mails.keys() == {"ada@example.com", "ops@example.com"}
        of_ada = re.findall(rf"{PUBLIC}(/answer/\S+)", mails["ada@example.com"])
        assert len(of_ada) == 1
        assert len(re.findall(r"/answer/", mails["ops@example.com"])) == 2
        await send(system, f"/{of_ada[0]}", {"answer": "yes"})
        run = await system.wait_for(run_id)
        assert isinstance(run["output"], dict)
        assert run["status"] == "COMPLETED"
        history = await system.call("GET", "/subscriptions/people/deliveries")
        assert b"/answer/" not in history.body


async def test_slack_and_teams_get_messages_with_links(tmp_path: Path) -> None:
    async with (
        event_receiver() as slack,
        event_receiver() as teams,
        running_system(tmp_path / "data", public_url=PUBLIC) as system,
    ):
        for name, receiver in (("slack", slack), ("teams", teams)):
            body: JsonObject = {
                "name": name,
                "url": receiver.url,
                "format": name,
                "types": ["question.asked"],
                "answer_links": True,
                "template": "Please answer ${ event.data.title }.",
            }
            assert (await system.call("POST", "/subscriptions", body)).status == 201
        run_id = await ask(system, asking("one", title="Pay?", assignees=["ada"], options=["yes"]))
        [in_slack], [in_teams] = await slack.accepts(1), await teams.accepts(1)
        header, text, links = in_slack["blocks"]
        assert header["text"]["text"] == "one asks: Pay?"
        assert text["text"]["text"] == "Please answer Pay?."
        url = re.findall(rf"<{PUBLIC}(/answer/[^|]+)\|Answer>", links["text"]["text"])
        card = in_teams["attachments"][0]["content"]
        assert [block["text"] for block in card["body"]] == ["one asks: Pay?", "Please answer Pay?."]
        assert card["actions"][0]["url"] == f"{PUBLIC}{url[0]}"
        assert slack.accepted[0].headers["content-type"].startswith("application/json")
        await send(system, f"/{url[0]}", {"answer": "yes"})
        assert (await system.wait_for(run_id))["status"] == "COMPLETED"


@pytest.mark.embedded_only
async def test_the_password_is_a_named_secret_and_leaves_only_over_tls(tmp_path: Path) -> None:
    certificate, key = made("127.0.0.1")
    for name, text in (("cert.pem", certificate), ("key.pem", key)):
        (tmp_path / name).write_text(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    login: JsonObject = {
        "ca_file": str(tmp_path / "cert.pem"),
        "user": "u",
        "password_secret": "mail",
    }
    async with (
        mail_server(tls=context, login=("u", "right")) as server,
        mailing_system(tmp_path, server, tls="starttls", **login) as system,
    ):
        await subscribe(system, mail="ops@example.com", types=["run.failed"])
        missing = await system.call("POST", "/subscriptions/people/test")
        assert "'mail'" in str(missing.json["error"])
        await system.call("PUT", "/secrets/mail", {"value": "wrong"})
        refused = await system.call("POST", "/subscriptions/people/test")
        assert "535" in str(refused.json["error"])
        assert b"wrong" not in refused.body
        await system.call("PUT", "/secrets/mail", {"value": "right"})
        sent = await system.call("POST", "/subscriptions/people/test")
        assert sent.json["status"] == "delivered", sent.body
        assert len(server.mails) == 1


@pytest.mark.embedded_only
async def test_a_server_that_never_answers_is_left_in_time() -> None:
    accepted = asyncio.Event()
    left = asyncio.Event()

    async def keep_waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await reader.read()
        left.set()
        writer.close()

    server = await asyncio.start_server(keep_waiting, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        target = SmtpServer(host="127.0.0.1", port=port, tls="none", sender="t@example.com")
        client = SmtpClient(target, 0.5)
        mails = [asyncio.create_task(client.send(EmailMessage(), "a@example.com")) for _ in range(2)]
        for found in await asyncio.gather(*mails, return_exceptions=True):
            assert isinstance(found, SmtpError)
        await asyncio.wait_for(left.wait(), 30)
        client.close()


@pytest.mark.embedded_only
@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"mail": "ops@example.com"}, "", "either 'url' or 'mail'"),
        ({"url": None}, "url", "url"),
        ({"template": "x"}, "template", "no effect on a CloudEvent"),
        ({"format": "slack", "template": "${ event.("}, "template", ""),
        ({"format": "slack", "secret": "a"}, "secret", "signs CloudEvents"),
        ({"format": "slakc"}, "format", "slack"),
        ({"url": _NONE, "mail": "Ada <a@b.c>"}, "mail", "not a mail address"),
        ({"url": _NONE, "mail": "assignees"}, "mail", "only for questions"),
        ({"url": _NONE, "mail": "a@b.c", "format": "teams"}, "format", "no effect with 'mail'"),
        ({"url": _NONE, "mail": ["a@b.c"] * 21}, "mail", "1 to 20"),
        ({"url": _NONE, "mail": "a@b.c"}, "mail", "No mail server is configured"),
    ],
)
async def test_a_wrong_definition_is_refused(
    system: RunningSystem, change: dict[str, Json], path: str, message: str
) -> None:
    body: JsonObject = {"name": "x", "url": "https://example.com/", "types": ["run.failed"], **change}
    body = {name: value for name, value in body.items() if value != _NONE}
    answer = await system.call("POST", "/subscriptions", body)
    assert answer.status == 422, answer.body
    errors = answer.json["errors"]
    assert isinstance(errors, list)
    found = [(each["path"], each["message"]) for each in errors if isinstance(each, dict)]
    assert any(each[0] == path and message in str(each[1]) for each in found), found
