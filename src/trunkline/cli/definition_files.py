"""Files of workflows, triggers and subscriptions: recognized, read and saved on the server."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError, diagnostic_of, explained
from trunkline.cli.inputs import STDIN, read_bytes
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.rendering.output import note
from trunkline.cli.rest.client import Client

if TYPE_CHECKING:
    from trunkline.api.resources.automation.subscriptions import SubscriptionResource
    from trunkline.api.resources.automation.triggers import TriggerResource
    from trunkline.api.resources.workflows import SavedWorkflow
    from trunkline.jsontypes import JsonObject
    from trunkline.workflow.document import parsing as workflow_parse
else:
    workflow_parse = lazy_module("trunkline.workflow.document.parsing")

_SUFFIXES = (".yaml", ".yml", ".json")


def is_file(argument: str) -> bool:
    """Whether FILE|NAME means a file. A workflow's name may be that of a folder here, so only files count."""
    return argument == STDIN or argument.endswith(_SUFFIXES) or os.sep in argument or os.path.isfile(argument)


def save_file(client: Client, path: str) -> tuple[SavedWorkflow, bool]:
    """Saves the file's workflow; errors of the server name the file."""
    return save_text(client, path, read_bytes(path))


def save_text(client: Client, path: str, text: bytes) -> tuple[SavedWorkflow, bool]:
    """The same for a file that has been read."""
    try:
        saved, created = client.save_workflow(text)
    except ApiError as error:
        error.source = path
        raise
    for warning in saved["warnings"]:
        note(f"{diagnostic_of(warning).text(path)} [warning]")
    return saved, created


Change = Literal["created", "updated", "unchanged"]


class AppliedTrigger(NamedTuple):
    trigger: TriggerResource
    change: Change


class AppliedSubscription(NamedTuple):
    subscription: SubscriptionResource
    change: Change


def read_document(path: str) -> tuple[bytes, JsonObject]:
    """The file's text, and the mapping that it holds. The server validates the rest."""
    text = read_bytes(path)
    with explained(path):
        document = workflow_parse.read_document(text, path)
    if not isinstance(document.value, dict):
        raise CliError(
            f"Cannot apply {path}: it is not a mapping",
            fix="Write keys and values, such as name: nightly",
            exit_code=Exit.INVALID,
        )
    return text, document.value


def save_trigger(client: Client, path: str, text: bytes, document: JsonObject) -> AppliedTrigger:
    """Errors of the server name the file."""
    name = _name(path, document, "trigger", "nightly")
    earlier = _updated_at(lambda: client.trigger(name)["updated_at"])
    try:
        trigger, created = client.save_trigger(name, text)
    except ApiError as error:
        error.source = path
        raise
    if created:
        return AppliedTrigger(trigger, "created")
    return AppliedTrigger(trigger, "unchanged" if trigger["updated_at"] == earlier else "updated")


def save_subscription(client: Client, path: str, text: bytes, document: JsonObject) -> AppliedSubscription:
    """Errors of the server name the file."""
    name = _name(path, document, "subscription", "billing")
    earlier = _updated_at(lambda: client.subscription(name)["updated_at"])
    try:
        subscription, created = client.save_subscription(name, text)
    except ApiError as error:
        error.source = path
        raise
    if created:
        return AppliedSubscription(subscription, "created")
    return AppliedSubscription(
        subscription, "unchanged" if subscription["updated_at"] == earlier else "updated"
    )


def _name(path: str, document: JsonObject, kind: str, example: str) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise CliError(
            f"Cannot apply {path}: the {kind} has no name",
            fix=f"Add a name: {example}",
            exit_code=Exit.INVALID,
        )
    return name


def _updated_at(read: Callable[[], str]) -> str | None:
    try:
        return read()
    except ApiError as error:
        if error.status != 404:
            raise
        return None
