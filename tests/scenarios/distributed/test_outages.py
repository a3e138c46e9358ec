"""Kafka or PostgreSQL away at the start and later: runs wait, nothing fails, and all goes on by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest
from tests.scenarios.distributed.held_run import held_run, runs_through
from tests.scenarios.distributed.server_process import server_process, trunkline
from tests.services import private_kafka, private_postgres

from trunkline.jsontypes import JsonObject

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]


async def test_a_kafka_that_is_away_at_the_start_is_waited_for_and_later_runs_wait(tmp_path: Path) -> None:
    with private_kafka() as kafka:
        broker = {"TRUNKLINE_BROKER": f"kafka://{kafka.servers}"}
        assert (await trunkline("topics", "create", **broker)).code == 0
        await asyncio.to_thread(kafka.kill)
        async with server_process(tmp_path, **broker) as server:
            await server.misses("broker", kafka.servers, "cannot be reached", "TRUNKLINE_BROKER")
            line = await server.says("waiting_for_dependency")
            assert line["dependency"] == "broker"
            await asyncio.to_thread(kafka.restart)
            async with held_run(server) as work:
                await asyncio.to_thread(kafka.kill)
                await server.misses("broker", kafka.servers)
                assert (await server.says("broker_unavailable"))["error"]
                state = (await server.call("GET", "/system")).json
                for consumers in cast("list[JsonObject]", state["consumers"]):
                    assert consumers["waiting"] is None
                    assert f"{kafka.servers} cannot be reached" in str(consumers["detail"])
                # The answer has nowhere to go, and neither has the first task of a new run.
                work.gate.opened.set()
                later = await server.start("two")
                await server.says("output_extracted")
                assert [await server.status(run) for run in (work.run_id, later)] == ["RUNNING", "RUNNING"]
                await asyncio.to_thread(kafka.restart)
                await work.end(later)
                assert await server.stop() == 0


async def test_a_postgres_that_is_away_at_the_start_is_waited_for_and_later_loses_nothing(
    tmp_path: Path,
) -> None:
    with private_postgres() as postgres:
        store = {"TRUNKLINE_STORE": postgres.url("migrated")}
        await asyncio.to_thread(postgres.stop)
        async with server_process(tmp_path, **store) as server:
            await server.misses("store", "cannot be reached", f"127.0.0.1:{postgres.port}")
            assert (await server.says("waiting_for_dependency"))["dependency"] == "store"
            await asyncio.to_thread(postgres.start)
            async with held_run(server) as work:
                await asyncio.to_thread(postgres.crash)
                work.gate.opened.set()
                await server.misses("store", f"127.0.0.1:{postgres.port}")
                for method, path in (("GET", f"/runs/{work.run_id}"), ("POST", "/workflows/two/execute")):
                    refused = await server.call(method, path)
                    assert refused.status == 503
                    assert "Nothing is lost" in str(refused.json["fix"])
                await asyncio.to_thread(postgres.start)
                await work.end()
                assert await server.stop() == 0


LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_trunkline="right-canary-31";'


async def test_a_login_that_kafka_refuses_is_named_without_its_password(tmp_path: Path) -> None:
    properties = {
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": LOGIN,
    }
    with private_kafka(properties=properties, secure_protocol="SASL_PLAINTEXT") as kafka:
        assert (await trunkline("topics", "create", TRUNKLINE_BROKER=f"kafka://{kafka.servers}")).code == 0
        login = {
            "TRUNKLINE_BROKER": f"kafka://{kafka.secure_servers}",
            "TRUNKLINE_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
            "TRUNKLINE_KAFKA_SASL_MECHANISM": "PLAIN",
            "TRUNKLINE_KAFKA_SASL_USERNAME": "trunkline",
        }
        async with server_process(
            tmp_path, **login, TRUNKLINE_KAFKA_SASL_PASSWORD="wrong-canary-31"
        ) as server:
            await server.misses("broker", "rejected our credentials", "TRUNKLINE_KAFKA_SASL_PASSWORD")
            assert (await server.says("waiting_for_dependency"))["dependency"] == "broker"
        assert "canary-31" not in (tmp_path / "serve.log").read_text()
        async with server_process(
            tmp_path, **login, TRUNKLINE_KAFKA_SASL_PASSWORD="right-canary-31"
        ) as server:
            await runs_through(server)
        assert "canary-31" not in (tmp_path / "serve.log").read_text()
