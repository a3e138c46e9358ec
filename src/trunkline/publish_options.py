"""
What `publish` says of a workflow or an agent: how it appears to callers over A2A.

    true                                                   with the defaults
    {"name", "description", "version", "skills": [{"id", "name", "description", "tags", "examples"}],
     "input_modes", "output_modes", "streaming", "provider": {"organization", "url"},
     "documentation_url", "icon_url", "security": "key" | "public",
     "input": a template that makes the run input of a message, "artifacts": {name: a template of an artifact},
     "message": a template of a message that is the response in place of the task}

Workflows and agents read it alike, except for the templates, which only workflows have. What a card says where nothing
is given, the publication decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.jsontypes import Json, decode, encode

Security = Literal["key", "public"]

# Everybody who asks for a card gets all of it.
MAX_CARD_TEXT = 10_000
MAX_CARD_ITEMS = 100

_Text = Annotated[str, Meta(min_length=1, max_length=MAX_CARD_TEXT)]
_Word = Annotated[str, Meta(min_length=1, max_length=255)]
_Words = Annotated[tuple[_Word, ...], Meta(max_length=MAX_CARD_ITEMS)]
_Url = Annotated[str, Meta(pattern=r"^https?://[^\s]+$", max_length=2_000)]


class SkillOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One skill of a card."""

    id: _Word
    name: _Word
    description: _Text
    tags: _Words = ()
    examples: Annotated[tuple[_Text, ...], Meta(max_length=MAX_CARD_ITEMS)] = ()
    input_modes: _Words = ()
    output_modes: _Words = ()


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    organization: _Word
    url: _Url


class PublishOptions(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """None and empty tuples: as the workflow or the agent says, or the default."""

    name: _Word | None = None
    description: _Text | None = None
    version: _Word | None = None
    skills: Annotated[tuple[SkillOptions, ...], Meta(max_length=MAX_CARD_ITEMS)] = ()
    input_modes: _Words = ()
    output_modes: _Words = ()
    streaming: bool = True
    provider: ProviderOptions | None = None
    documentation_url: _Url | None = None
    icon_url: _Url | None = None
    # `public`: callers need no API key, even where the API requires keys.
    security: Security = "key"
    # Of a workflow: templates. What a message becomes, artifacts in addition to the output, and a message that is the
    # response in place of the task.
    input: Json | UnsetType = UNSET
    artifacts: Annotated[dict[_Word, Json], Meta(max_length=MAX_CARD_ITEMS)] = {}
    message: Json | UnsetType = UNSET


DEFAULT_PUBLISH_OPTIONS = PublishOptions()


class PublishFinding(NamedTuple):
    """What is wrong with `publish`, and where: the keys and indexes that lead to it."""

    path: Sequence[str | int]
    message: str


def read_publish_options(value: Json) -> PublishOptions | PublishFinding | None:
    """None: it is not published."""
    if value is None or value is False:
        return None
    if value is True:
        return DEFAULT_PUBLISH_OPTIONS
    if not isinstance(value, dict):
        return PublishFinding((), "must be true, false or an object with options")
    try:
        # A key that is null is one that was left out.
        options = msgspec.convert(_without_nulls(value), PublishOptions)
    except msgspec.ValidationError as exc:
        message, _, place = str(exc).replace(" - at `key` in `$", " of a key - at `$").partition(" - at `$")
        return PublishFinding(tuple(_keys(place.removesuffix("`"))), message)
    ids = [skill.id for skill in options.skills]
    if len(set(ids)) < len(ids):
        return PublishFinding(("skills",), "two skills must not have the same id")
    return options


def publish_options_to_json(options: PublishOptions | None) -> Json:
    """What `read_publish_options` reads."""
    if options is None:
        return None
    return decode(encode(options)) or True


def template_in(options: PublishOptions) -> str | None:
    """The first of its keys that only a workflow can have."""
    if options.input is not UNSET:
        return "input"
    if options.artifacts:
        return "artifacts"
    return None if options.message is UNSET else "message"


def _without_nulls(value: dict[str, Json]) -> dict[str, Json]:
    return {key: inner for key, inner in value.items() if inner is not None}


def _keys(place: str) -> Iterator[str | int]:
    """The steps of a place as msgspec words it: `.skills[0].id`, `[...]` where it does not know the index."""
    for key in place.replace("[", ".[").split("."):
        if key.startswith("["):
            if key[1:-1].isdigit():
                yield int(key[1:-1])
        elif key:
            yield key
