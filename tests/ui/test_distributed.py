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
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deploy.local.postgres import PostgresServer
from playwright.sync_api import Browser, Page, expect
from tests.scenarios.distributed.topic_records import TopicReader
from tests.services import PARTITIONS, backend_variables, fresh_database, fresh_topics, wait_for_futures
from tests.ui.agents import ThreadedAgents
from tests.ui.browser import check_appearance, watched_page
from tests.ui.wheel_install import trunkline_role

from trunkline.cli.rest.client import Client
from trunkline.jsontypes import encode
from trunkline.testing import simple_success

WORKFLOW = b"{name: greet, steps: {only: {agent: Greeter}}}"


@dataclass(frozen=True)
class RoleProcesses:
    client: Client
    kafka: TopicReader
    agents: ThreadedAgents

    def order(self, value: bytes, key: bytes) -> None:
        self.write(self.kafka.topics.commands, value, key)

    def write(self, topic: str, value: bytes, key: bytes) -> None:
        self.agents.portal.call(partial(self.kafka.write, topic, value, key))

    def take_all(self, group: str, topic: str) -> None:
        """As a consumer that has settled everything."""
        with Consumer({"bootstrap.servers": self.kafka.servers, "group.id": group}) as consumer:
            places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            ends = [consumer.get_watermark_offsets(place, timeout=60)[1] for place in places]
            settled = [TopicPartition(topic, number, end) for number, end in enumerate(ends)]
            consumer.commit(offsets=settled, asynchronous=False)


@pytest.fixture(scope="module")
def fleet(
    session_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    agents: ThreadedAgents,
    postgres: PostgresServer,
    kafka_servers: str,
    kafka_admin: AdminClient,
) -> Generator[RoleProcesses]:
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
        yield RoleProcesses(client, TopicReader(kafka_servers, topics), agents)


@pytest.fixture
def page(browser: Browser, fleet: RoleProcesses) -> Generator[Page]:
    with watched_page(browser, fleet.client.url) as page:
        yield page


def test_it_shows_every_process_and_what_they_need(page: Page, fleet: RoleProcesses) -> None:
    page.goto("/system")
    expect(page.get_by_test_id("version")).to_contain_text("PostgreSQL")
    for dependency in ("Store ready", "Broker ready"):
        expect(page.get_by_test_id("dependencies")).to_contain_text(dependency)
    processes = page.get_by_test_id("process")
    expect(processes).to_have_count(3)
    for role in ("api", "bridge", "executor"):
        cell = page.get_by_role("cell", name=re.compile(f"^{role}"))
        expect(processes.filter(has=cell)).to_contain_text("Alive")
    expect(page.get_by_test_id("queues").locator("[data-name=outbox]")).to_be_visible()
    topics = fleet.kafka.topics
    for topic, consumers in (
        (topics.tasks, "Bridges"),
        (topics.results, "Executors"),
        (topics.commands, "API servers"),
    ):
        group = page.locator(f"[data-testid=consumer-group][data-topic='{topic}']")
        expect(group).to_contain_text(consumers)
        expect(group.get_by_test_id("waiting")).to_have_text("0")
    check_appearance(page, "system-distributed")


def test_what_waits_in_kafka_is_shown_until_it_is_consumed(
    page: Page, fleet: RoleProcesses, kafka_admin: AdminClient
) -> None:
    topic, group = fleet.kafka.topics.tasks_of("gpu"), f"{fleet.kafka.topics.tasks}.bridge.gpu"
    fleet.client.create_agent({"name": "Painter", "url": "http://127.0.0.1:9/", "pool": "gpu"})
    page.goto("/system")
    expect(page.get_by_test_id("consumers-trouble")).to_have_text(
        f"Kafka has no topic {topic}. Create it with: trunkline topics create --pool gpu"
    )
    row = page.locator(f"[data-testid=consumer-group][data-topic='{topic}']")
    expect(row).to_contain_text("Bridges in pool gpu")
    expect(row.get_by_test_id("waiting")).to_have_text("unknown")
    check_appearance(page, "system-lag-unknown")
    wait_for_futures(kafka_admin.create_topics([NewTopic(topic, PARTITIONS)]))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
    for number in range(3):
        fleet.write(topic, b"{}", b"%d" % number)
    expect(row.get_by_test_id("waiting")).to_have_text("3")
    expect(page.get_by_test_id("consumers-trouble")).to_have_count(0)
    expect(page.get_by_test_id("warnings")).to_contain_text("no bridge of the pool gpu is running")
    check_appearance(page, "system-lag")
    page.set_viewport_size({"width": 390, "height": 800})
    check_appearance(page, "system-lag-phone")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    fleet.take_all(group, topic)
    expect(row.get_by_test_id("waiting")).to_have_text("0")
    expect(page.get_by_test_id("warnings")).to_have_count(0)


def test_an_order_that_came_too_early_is_replayed_and_its_run_followed(
    page: Page, fleet: RoleProcesses
) -> None:
    page.goto("/system?tab=letters")
    expect(page.get_by_test_id("no-letters")).to_be_visible()
    fleet.order(encode({"workflow": "greet", "correlation_id": "order-1"}), b"early")
    page.get_by_test_id("letter-row").get_by_role("link").click()
    expect(page.get_by_test_id("letter-reason")).to_contain_text("greet")
    fleet.client.save_workflow(WORKFLOW)
    page.get_by_test_id("replay").click()
    page.get_by_test_id("confirm-replay").click()
    expect(page.get_by_test_id("toast")).to_contain_text("replayed")
    expect(page.get_by_test_id("no-letters")).to_be_visible()
    page.goto("/runs")
    row = page.get_by_test_id("run")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Completed")
    row.get_by_role("link").first.click()
    expect(page.get_by_test_id("graph-step-only")).to_contain_text("Completed")
