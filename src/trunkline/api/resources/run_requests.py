"""The bodies of requests that change a run."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import JsonValue
from trunkline.api.resources.runs import LabelKey, LabelValue
from trunkline.machine.inputs import CompensationDecision, ResolvedOutcome
from trunkline.workflow import MAX_LABELS


class RunPatch(msgspec.Struct, forbid_unknown_fields=True):
    labels: Annotated[
        dict[LabelKey, LabelValue | None],
        Meta(
            description="Labels to set. Null removes a label. Other labels stay as they are.",
            max_length=2 * MAX_LABELS,
        ),
    ]


class RetryRequest(msgspec.Struct, forbid_unknown_fields=True):
    from_step: (
        Annotated[str | None, Meta(description="Run this step and all steps that depend on it again.")]
        | UnsetType
    ) = UNSET
    from_start: Annotated[bool, Meta(description="Run all steps again, and keep no outputs.")] = False
    input: (
        Annotated[
            JsonValue, Meta(description="New input for the run. Defaults to the input of the original run.")
        ]
        | UnsetType
    ) = UNSET
    step_input: (
        Annotated[
            JsonValue,
            Meta(
                description="Input for `from_step`, instead of the one that the workflow creates. Not for a "
                "`for_each` step, a block, a switch or a repeated step."
            ),
        ]
        | UnsetType
    ) = UNSET


class ResolveRequest(msgspec.Struct, forbid_unknown_fields=True):
    outcome: Annotated[
        ResolvedOutcome | CompensationDecision,
        Meta(
            description="Of a call with an unknown outcome: `succeeded`, `failed` or `call_again`. Of a compensation "
            "that has failed: `retry`, `skip` (what it undoes needs no more undoing), or `give_up` (the run ends, and "
            "the rest is not undone)."
        ),
    ]
    output: Annotated[JsonValue, Meta(description="The step's output, if the outcome is `succeeded`.")] = None
