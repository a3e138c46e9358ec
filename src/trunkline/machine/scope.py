"""What an expression can read of a run: `input`, `run` and `steps.<name>`, decoded once for a decision."""

from __future__ import annotations

import msgspec

from trunkline.jsontypes import Json, decode
from trunkline.machine.state import RunState, StepState
from trunkline.messages import StepError
from trunkline.workflow import ExpressionError

_STEPS = "steps."


class RunScope:
    def __init__(self, state: RunState) -> None:
        self._state = state
        self._input: Json = None
        self._input_read = False
        # By identity of the text: a step that is done never gets another output.
        self._outputs: dict[str, Json] = {}

    def __call__(self, name: str) -> Json:
        if name == "input":
            if not self._input_read:
                self._input = _read(self._state.input, "input", "the run's input")
                self._input_read = True
            return self._input
        if name == "run":
            return {"id": self._state.id, "correlation_id": self._state.correlation_id}
        return self._step(name.removeprefix(_STEPS))

    def _step(self, name: str) -> Json:
        step = self._state.steps.get(name)
        if step is None:
            return {"status": "PENDING", "output": None, "error": None}
        return {"status": step.status, "output": self._output(step), "error": _error(step.error)}

    def _output(self, step: StepState) -> Json:
        if step.output is None:
            return None
        if step.name not in self._outputs:
            self._outputs[step.name] = _read(
                step.output, f"steps.{step.name}.output", f"the output of step {step.name}"
            )
        return self._outputs[step.name]


def _read(text: bytes, path: str, what: str) -> Json:
    # A dialect passes an output on as text that it has not read to the end: this may be the first who does.
    try:
        return decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ExpressionError(f"{what} cannot be read as JSON: {exc}", path) from exc


def _error(error: StepError | None) -> Json:
    if error is None:
        return None
    return {
        "code": error.code,
        "message": error.message,
        "http_status": error.http_status,
        "jsonrpc_code": error.jsonrpc_code,
    }
