"""
The catalog: the cards of everything that is published, in pages, found by skill and tag.

    GET /a2a/catalog?skill=&tag=&limit=&cursor=             {"items": [card, …], "next_cursor": …}

A page can have fewer cards than its limit, or none, and still be followed by another one: a request reads a bounded
number of workflows, whether they are published or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from starlette.requests import Request

from trunkline.api.paging import TextPageParameters, decode_cursor, encode_cursor, page_within
from trunkline.api.parameters import ParameterReader
from trunkline.publishing.publications import Publication, Publications
from trunkline.services.workflows import Workflows

CATALOG_PATH = "catalog"
# Some workflows have thousands of steps, and each that is published is compiled.
MAX_WORKFLOWS_READ = 200
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
    def __init__(self, workflows: Workflows, publications: Publications) -> None:
        self._workflows = workflows
        self._publications = publications
        self._parameters = ParameterReader(CatalogParameters, f"/a2a/{CATALOG_PATH}")

    async def read(self, request: Request) -> CatalogPage:
        """Raises `Invalid` for parameters that cannot be read."""
        wanted = self._parameters.read(request)
        saved, following = await page_within(
            lambda after, limit: self._workflows.list(limit=limit, after=after),
            decode_cursor(wanted.cursor),
            MAX_WORKFLOWS_READ,
            key=lambda version: version.name,
            size_bytes=lambda version: len(version.canonical) + len(version.source),
        )
        found: list[Publication] = []
        for version in saved:
            if _PUBLISH not in version.canonical:
                continue
            publication = await self._publications.find("workflows", version.name)
            if publication is not None and wanted.match(publication):
                found.append(publication)
                if len(found) == wanted.limit:
                    return CatalogPage(found, encode_cursor(version.name))
        return CatalogPage(found, following)
