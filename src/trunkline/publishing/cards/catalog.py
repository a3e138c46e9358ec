"""
The catalog: the cards of everything that is published, in pages, found by skill and tag.

    GET /a2a/catalog?skill=&tag=&limit=&cursor=             {"items": [card, …], "next_cursor": …}

A page can have fewer cards than its limit, or none, and still be followed by another one: a request reads a bounded
number of agents and workflows, whether they match or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from starlette.requests import Request

from trunkline.api.paging import TextPageParameters, decode_cursor, encode_cursor, read_within
from trunkline.api.parameters import ParameterReader
from trunkline.jsontypes import encode
from trunkline.publishing.publications import Publication, Publications
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.workflows import Workflows

CATALOG_PATH = "catalog"
# Some workflows have thousands of steps, and each that is published is compiled.
MAX_READ = 200
# A definition without this text is not published, so it need not be decoded.
_PUBLISH = b'"publish"'


class CatalogParameters(TextPageParameters, frozen=True, kw_only=True):
    skill: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    tag: Annotated[str, msgspec.Meta(max_length=255)] | None = None

    def match(self, publication: Publication) -> bool:
        skills = publication.skills
        return (self.skill is None or any(self.skill in (skill.id, skill.name) for skill in skills)) and (
            self.tag is None or any(self.tag in skill.tags for skill in skills)
        )


class CatalogPage(NamedTuple):
    publications: Sequence[Publication]
    next_cursor: str | None


class Catalog:
    """Agents first, then workflows, each by name. A cursor is the key of the last publication that was read."""

    def __init__(self, workflows: Workflows, agents: AgentRegistry, publications: Publications) -> None:
        self._workflows = workflows
        self._agents = agents
        self._publications = publications
        self._parameters = ParameterReader(CatalogParameters, f"/a2a/{CATALOG_PATH}")

    async def read(self, request: Request) -> CatalogPage:
        """Raises `Invalid` for parameters that cannot be read."""
        wanted = self._parameters.read(request)
        kind, _, name = (decode_cursor(wanted.cursor) or "").partition("/")
        if kind == "workflows":
            return await self._of_workflows(wanted, [], name)
        found, last = await self._of_agents(wanted, name)
        if last is not None:
            return CatalogPage(found, encode_cursor(f"agents/{last}"))
        if len(found) == wanted.limit:
            return CatalogPage(found, encode_cursor("workflows/"))
        return await self._of_workflows(wanted, found, "")

    async def _of_agents(self, wanted: CatalogParameters, after: str) -> tuple[list[Publication], str | None]:
        """Those of one page, and the name of the last agent that was read if there may be more."""
        agents, more = await read_within(
            lambda seen, limit: self._agents.list(limit=limit, after=seen, published=True),
            after,
            MAX_READ,
            key=lambda agent: agent.name,
            size_bytes=lambda agent: len(encode(agent.publish)),
        )
        found: list[Publication] = []
        for number, agent in enumerate(agents, 1):
            publication = await self._publications.of_agent(agent)
            if publication is not None and wanted.match(publication):
                found.append(publication)
                if len(found) == wanted.limit:
                    return found, agent.name if more or number < len(agents) else None
        return found, agents[-1].name if more else None

    async def _of_workflows(
        self, wanted: CatalogParameters, found: list[Publication], after: str
    ) -> CatalogPage:
        saved, more = await read_within(
            lambda seen, limit: self._workflows.list(limit=limit, after=seen),
            after,
            MAX_READ,
            key=lambda version: version.name,
            size_bytes=lambda version: len(version.canonical) + len(version.source),
        )
        for version in saved:
            if _PUBLISH not in version.canonical:
                continue
            publication = await self._publications.find("workflows", version.name)
            if publication is not None and wanted.match(publication):
                found.append(publication)
                if len(found) == wanted.limit:
                    return CatalogPage(found, encode_cursor(f"workflows/{version.name}"))
        return CatalogPage(found, encode_cursor(f"workflows/{saved[-1].name}") if more else None)
