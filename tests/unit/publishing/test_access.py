"""Who may call what is published."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from trunkline.clock import Instant
from trunkline.errors import NotAllowed
from trunkline.publish_options import PublishOptions
from trunkline.publishing.access import refused
from trunkline.publishing.publications import Publication
from trunkline.stores.port.workflows import WorkflowVersion
from trunkline.workflow import StepDefinition, WorkflowDefinition, compile_workflow


def publication(options: PublishOptions) -> Publication:
    workflow = compile_workflow(
        WorkflowDefinition(name="w", steps={"only": StepDefinition(name="only", agent="A")})
    )
    saved = WorkflowVersion(
        workflow_id="w", name="w", version=1, canonical=b"", source=b"", created_at=Instant(0)
    )
    return Publication(
        kind="workflows",
        name="w",
        options=options,
        about="",
        default_version="1",
        changed_at=Instant(0),
        saved=saved,
        workflow=workflow,
    )


def test_a_request_that_the_check_of_keys_has_let_pass_is_refused_where_keys_are_required() -> None:
    request = Request({"type": "http", "method": "POST", "path": "/a2a/workflows/w", "headers": []})
    closed = publication(PublishOptions())
    with pytest.raises(NotAllowed, match="needs an API key"):
        refused(request, closed, has_keys=True)
    assert refused(request, closed, has_keys=False) is None
    assert refused(request, publication(PublishOptions(security="public")), has_keys=True) is None
