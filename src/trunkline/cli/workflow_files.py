"""Workflow files: recognised, read and saved on the server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from trunkline.cli.failures import ApiError, diagnostic_of
from trunkline.cli.inputs import STDIN, read_bytes
from trunkline.cli.rendering.output import note
from trunkline.cli.rest.client import Client

if TYPE_CHECKING:
    from trunkline.api.resources.workflows import SavedWorkflow

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
