"""What the API shows of an agent that was tried out; `schemas.trials` describes the same shape."""

from __future__ import annotations

import msgspec

from trunkline.api.resources.exchanges import in_order
from trunkline.api.resources.runs import step_failure
from trunkline.clock import rfc3339
from trunkline.jsontypes import encode
from trunkline.services.agents.inspection import AgentTestResult


def trial_json(trial: AgentTestResult) -> bytes:
    question = trial.question
    return encode(
        {
            "outcome": trial.outcome,
            "output": None if trial.output is None else msgspec.Raw(trial.output),
            "error": None if trial.error is None else step_failure(trial.error),
            "question": None
            if question is None
            else {"kind": question.kind, "text": question.text, "data": question.data},
            "warnings": list(trial.warnings),
            "protocol": trial.protocol,
            "started_at": rfc3339(trial.started_at),
            "duration_ms": trial.duration_ms,
            "exchanges": in_order(trial.exchanges),
        }
    )
