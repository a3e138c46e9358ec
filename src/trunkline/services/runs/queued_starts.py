"""
What a new run has to wait for: the gate of its trigger, or else of its workflow.

Deciding which of the runs behind a gate start is left to the executor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from trunkline.clock import Instant, after
from trunkline.errors import Invalid
from trunkline.jsontypes import Json, encode
from trunkline.stores.port.automation.triggers import QueuedStart
from trunkline.triggers.flow_control import gate_policy
from trunkline.workflow import CompiledWorkflow, ExpressionError, Template
from trunkline.workflow.flow_control.definition import FlowControl

# A column holds no more; a longer key is replaced by its digest.
_LONGEST_KEY = 150


def key_text(value: Json) -> str | None:
    """What an expression for a key has made, as text; None: there is no key."""
    if value is None or value == "":
        return None
    text = value if isinstance(value, str) else encode(value).decode()
    if len(text) > _LONGEST_KEY or not text.isprintable():
        text = f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"
    return text


def start_behind_workflow_gate(
    workflow_id: str, workflow: CompiledWorkflow, run_input: Json, now: Instant, priority: int | None = None
) -> QueuedStart | None:
    """
    None: the workflow has no flow control that holds runs back, and the run starts at once.

    `priority`: in place of that of the workflow. Raises `Invalid` if the key cannot be evaluated.
    """
    flow = workflow.definition.flow
    if flow is None:
        return None
    name = f"workflow {workflow.definition.name}"
    return start_behind_gate(
        f"workflow/{workflow_id}", name, flow, workflow.flow_key, run_input, now, priority
    )


def start_behind_gate(
    owner: str,
    name: str,
    flow: FlowControl,
    flow_key: Template | None,
    run_input: Json,
    now: Instant,
    priority: int | None = None,
) -> QueuedStart | None:
    """`owner`: whose gates they are, for the store; `name`: for people."""
    if not flow.holds_back:
        return None
    key: str | None = None
    if flow_key is not None:
        scope: Mapping[str, Json] = {"input": run_input}
        try:
            key = key_text(flow_key.evaluate(scope.__getitem__))
        except ExpressionError as exc:
            raise Invalid(
                f"The key of the flow control of the {name} cannot be evaluated: {exc}.",
                fix="Correct the expression in concurrency.key or debounce, or the input.",
            ) from exc
    policy = gate_policy(flow)
    return QueuedStart(
        gate=f"{owner}/{key or ''}",
        policy=policy,
        priority=flow.priority if priority is None else priority,
        not_before=now if policy.debounce is None else after(now, policy.debounce),
    )
