"""Agents for tests that are not asynchronous: they live on a loop in a thread of their own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from anyio.from_thread import BlockingPortal, start_blocking_portal

from trunkline.testing.agents import Script, ScriptedAgent


class ThreadedAgents:
    def __init__(self, portal: BlockingPortal, stack: ExitStack) -> None:
        self.portal = portal
        self._stack = stack

    def start(self, *scripts: Script) -> ScriptedAgent:
        async def make() -> ScriptedAgent:
            # Inside of the loop, whose events it uses.
            return ScriptedAgent(*scripts)

        agent = self.portal.call(make)
        return self._stack.enter_context(self.portal.wrap_async_context_manager(agent))


@contextmanager
def threaded_agents() -> Generator[ThreadedAgents]:
    with start_blocking_portal() as portal, ExitStack() as stack:
        yield ThreadedAgents(portal, stack)
