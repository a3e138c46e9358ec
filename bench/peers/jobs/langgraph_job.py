"""
The job as a graph of LangGraph: each call is a node, with a checkpoint before the next one begins.

    python -m bench.peers.jobs.langgraph_job AGENT_URL DATABASE_URL
    python -m bench.peers.jobs.langgraph_job AGENT_URL FILE
"""
# The library is in another environment.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypedDict

import uvloop
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from bench.harness.job import STEPS, TEXT
from bench.harness.load import take_orders
from bench.peers.jobs.agent_call import AgentCaller, agent_caller, check_text

# All graphs share a pool. PostgreSQL and the worker have two cores, which more connections would not use.
_CONNECTIONS = 10


class _State(TypedDict):
    text: str


@asynccontextmanager
async def _saver(database: str) -> AsyncGenerator[Any]:
    if not database.startswith("postgresql"):
        async with AsyncSqliteSaver.from_conn_string(database) as saver:
            await saver.setup()
            yield saver
        return
    async with AsyncConnectionPool(
        database,
        max_size=_CONNECTIONS,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    ) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver


def _job(caller: AgentCaller, saver: Any) -> Any:
    async def call_agent(state: _State) -> _State:
        return {"text": await caller.call(state["text"])}

    graph: Any = StateGraph(_State)
    names = [f"step_{number}" for number in range(STEPS)]
    for name in names:
        graph.add_node(name, call_agent)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=saver)


async def _main(agent_url: str, database: str) -> None:
    async with agent_caller(agent_url) as caller, _saver(database) as saver:
        job = _job(caller, saver)

        async def run_workflow() -> None:
            config = {"configurable": {"thread_id": str(uuid.uuid4())}}
            state = await job.ainvoke({"text": TEXT}, config, durability="sync")
            check_text(state["text"])

        await take_orders(lambda _: run_workflow)


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], sys.argv[2]))
