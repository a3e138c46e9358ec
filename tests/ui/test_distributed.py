"""The page of the API role, with Kafka, PostgreSQL and the other roles in processes of their own."""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from playwright.sync_api import Browser, Page, expect
from tests.scenarios.distributed.records import Kafka
from tests.services import backend_variables, fresh_database, fresh_topics
from tests.ui.agents import Agents
from tests.ui.browser import look_at, watched_page
from tests.ui.installed import trunkline_role

from trunkline.cli.client import Client
from trunkline.jsontypes import encode
from trunkline.testing import simple_success

WORKFLOW = b"{name: greet, steps: {only: {agent: Greeter}}}"


@dataclass(frozen=True)
class Fleet:
    client: Client
    kafka: Kafka
    agents: Agents

    def order(self, value: bytes, key: bytes) -> None:
        self.agents.portal.call(partial(self.kafka.write, self.kafka.topics.commands, value, key))


@pytest.fixture(scope="module")
def fleet(
    session_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    agents: Agents,
    postgres: PostgresServer,
    kafka_servers: str,
    kafka_admin: AdminClient,
) -> Generator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        topics = stack.enter_context(fresh_topics(kafka_admin))
        settings = {
            **backend_variables(stack.enter_context(fresh_database(postgres)), kafka_servers, topics),
            "TRUNKLINE_COMMANDS_TOPIC": str(topics.commands),
            "TRUNKLINE_SECRET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "TRUNKLINE_ALLOWED_NETWORKS": "127.0.0.0/8",
        }
        for role in ("bridge", "executor"):
            stack.enter_context(trunkline_role(session_folder, folder, role, settings))
        client = Client(stack.enter_context(trunkline_role(session_folder, folder, "api", settings)))
        greeter = agents.start(simple_success({"text": "Good morning"}))
        client.create_agent({"name": "Greeter", "url": greeter.url, "protocol": "simple-a2a"})
        yield Fleet(client, Kafka(kafka_servers, topics), agents)


@pytest.fixture
def page(browser: Browser, fleet: Fleet) -> Generator[Page]:
    with watched_page(browser, fleet.client.url) as page:
        yield page


def test_it_shows_every_process_and_what_they_need(page: Page) -> None:
    page.goto("/system")
    expect(page.get_by_test_id("version")).to_contain_text("PostgreSQL")
    for dependency in ("The store is ready", "The broker is ready"):
        expect(page.get_by_test_id("dependencies")).to_contain_text(dependency)
    processes = page.get_by_test_id("process")
    expect(processes).to_have_count(3)
    for role in ("api", "bridge", "executor"):
        cell = page.get_by_role("cell", name=re.compile(f"^{role}"))
        expect(processes.filter(has=cell)).to_contain_text("Alive")
    expect(page.get_by_test_id("queues").locator("[data-name=outbox]")).to_be_visible()
    look_at(page, "system-distributed")


def test_an_order_that_came_too_early_is_replayed_and_its_run_followed(page: Page, fleet: Fleet) -> None:
    page.goto("/system?tab=letters")
    expect(page.get_by_test_id("no-letters")).to_be_visible()
    fleet.order(encode({"workflow": "greet", "correlation_id": "order-1"}), b"early")
    page.get_by_test_id("letter-row").get_by_role("link").click()
    expect(page.get_by_test_id("letter-reason")).to_contain_text("greet")
    fleet.client.save_workflow(WORKFLOW)
    page.get_by_test_id("replay").click()
    page.get_by_test_id("confirm-replay").click()
    expect(page.get_by_test_id("toast")).to_contain_text("Sent on")
    expect(page.get_by_test_id("no-letters")).to_be_visible()
    page.goto("/runs")
    row = page.get_by_test_id("run")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Completed")
    row.get_by_role("link").first.click()
    expect(page.get_by_test_id("graph-step-only")).to_contain_text("Completed")
