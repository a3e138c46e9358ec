"""
Publications: the workflows and agents that callers can reach over A2A, found by the names in their addresses.

A publication is read for every request. The store and the compiled workflows are what is kept of it.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from trunkline.agents import Agent
from trunkline.agents.cards import CardDetails
from trunkline.clock import Instant
from trunkline.errors import NotFound
from trunkline.jsontypes import encode
from trunkline.publish_options import PublishOptions, SkillOptions
from trunkline.publishing.cards.input_examples import examples_of
from trunkline.services.agents.published import AgentWorkflows
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.workflows import Workflows
from trunkline.stores.base import WorkflowVersion
from trunkline.workflow import CompiledWorkflow

PublicationKind = Literal["workflows", "agents"]

_DEFAULT_MODES = ("text/plain", "application/json")
_MAX_EXAMPLES = 5
_MAX_EXAMPLE_BYTES = 2_000


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """What callers reach under one address."""

    kind: PublicationKind
    name: str
    options: PublishOptions
    # What the card says where the options do not.
    about: str
    default_version: str
    # When the workflow version or the record of the agent was saved.
    changed_at: Instant
    details: CardDetails = CardDetails()
    # The version that a new task is a run of; of an agent, the workflow that passes messages on to it.
    saved: WorkflowVersion
    workflow: CompiledWorkflow

    @property
    def key(self) -> str:
        """Its name among all publications, as tasks have it."""
        return f"{self.kind}/{self.name}"

    @property
    def card_name(self) -> str:
        return self.options.name or self.name

    @property
    def description(self) -> str:
        return self.options.description or self.about

    @property
    def version(self) -> str:
        return self.options.version or self.default_version

    @property
    def input_modes(self) -> tuple[str, ...]:
        return self.options.input_modes or self.details.input_modes or _DEFAULT_MODES

    @property
    def output_modes(self) -> tuple[str, ...]:
        return self.options.output_modes or self.details.output_modes or _DEFAULT_MODES

    @property
    def skills(self) -> tuple[SkillOptions, ...]:
        return self.options.skills or self.details.skills or (self._skill(),)

    def _skill(self) -> SkillOptions:
        """The one that it has where none is given: itself."""
        identity = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "skill"
        return SkillOptions(
            id=identity,
            name=self.card_name,
            description=self.description,
            tags=(identity,),
            examples=self._examples(),
        )

    def _examples(self) -> tuple[str, ...]:
        """Those of the input schema: a text as it is, anything else as JSON."""
        texts = [
            example if isinstance(example, str) else encode(example).decode()
            for example in examples_of(self.workflow.definition.input)
        ]
        return tuple(text for text in texts[:_MAX_EXAMPLES] if 0 < len(text) <= _MAX_EXAMPLE_BYTES)


def card_details(agent: Agent) -> CardDetails:
    """What the agent's own card says, with the skills that the agent is registered with if there are any."""
    known = None if agent.dialect is None else agent.dialect.details
    details = known or CardDetails()
    named = {skill.id: skill for skill in details.skills}
    about = agent.description or details.description or f"The agent {agent.name}."
    skills = tuple(
        named.get(skill_id) or SkillOptions(id=skill_id, name=skill_id, description=about)
        for skill_id in agent.skills
    )
    return msgspec.structs.replace(details, skills=skills)


class Publications:
    def __init__(self, workflows: Workflows, agents: AgentRegistry, agent_workflows: AgentWorkflows) -> None:
        self._workflows = workflows
        self._agents = agents
        self._agent_workflows = agent_workflows

    async def find(self, kind: str, name: str) -> Publication | None:
        """None: nothing is published under that name."""
        match kind:
            case "workflows":
                return await self._workflow(name)
            case "agents":
                return await self._agent(name)
            case _:
                return None

    async def of_agent(self, agent: Agent) -> Publication | None:
        if agent.publish is None:
            return None
        saved = await self._agent_workflows.of(agent.name)
        details = card_details(agent)
        return Publication(
            kind="agents",
            name=agent.name,
            options=agent.publish,
            about=agent.description or details.description or f"The agent {agent.name}.",
            details=details,
            default_version=str(agent.version),
            changed_at=agent.updated_at,
            saved=saved,
            workflow=await self._workflows.compiled(saved.workflow_id, saved.version),
        )

    async def _agent(self, name: str) -> Publication | None:
        try:
            agent = await self._agents.get(name)
        except NotFound:
            return None
        return await self.of_agent(agent) if agent.name == name else None

    async def _workflow(self, name: str) -> Publication | None:
        try:
            saved = await self._workflows.get(name)
        except NotFound:
            return None
        # An id finds a workflow as well, but is not part of an address.
        if saved.name != name or "/" in name:
            return None
        workflow = await self._workflows.compiled(saved.workflow_id, saved.version)
        options = workflow.definition.publish
        if options is None:
            return None
        return Publication(
            kind="workflows",
            name=name,
            options=options,
            about=workflow.definition.description or f"The workflow {name}.",
            default_version=str(saved.version),
            changed_at=saved.created_at,
            saved=saved,
            workflow=workflow,
        )
