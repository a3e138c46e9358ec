"""
The workflows behind published agents: one step that passes the caller's message on to the agent.

Each is made when the agent gets its first message, and kept, so that a run does not depend on the agent's record. Its
name, `agents/NAME`, cannot be one that a user chose, and lists of workflows leave it out.
"""

from __future__ import annotations

import msgspec

from trunkline.errors import AlreadyExists
from trunkline.id_generation import new_id
from trunkline.jsontypes import JsonObject, encode
from trunkline.stores.base import Store, WorkflowVersion
from trunkline.workflow import canonical_form, load_workflow

CALL_STEP = "call"
_PREFIX = "agents/"


def workflow_name_of(agent: str) -> str:
    """The name of the workflow that calls this agent; it is the agent's name as a publication, too."""
    return _PREFIX + agent


class AgentWorkflows:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, agent: str) -> WorkflowVersion:
        """The workflow of an agent, which is made if there is none yet."""
        name = workflow_name_of(agent)
        return await self._store.workflows.get(name) or await self._insert(agent, name)

    async def _insert(self, agent: str, name: str) -> WorkflowVersion:
        definition = _definition(agent)
        try:
            async with self._store.transaction() as tx:
                latest = await tx.workflows.latest_version(name)
                if latest is not None:
                    return latest
                version = WorkflowVersion(
                    workflow_id=new_id(),
                    name=name,
                    version=1,
                    canonical=definition,
                    source=definition,
                    created_at=tx.now,
                )
                await tx.workflows.insert_version(version)
                return version
        except AlreadyExists:
            # Another process was first.
            made = await self._store.workflows.get(name)
            if made is None:
                raise
            return made


def _definition(agent: str) -> bytes:
    """In the form that the store keeps."""
    step: JsonObject = {"agent": agent, "message": "caller", "context": "caller"}
    loaded = load_workflow(encode({"name": "agent", "steps": {CALL_STEP: step}}))
    return canonical_form(msgspec.structs.replace(loaded.definition, name=workflow_name_of(agent)))
