"""What an expression can read of a run: `input`, `run` and `steps.<name>`, decoded once for a decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import Json, decode
from trunkline.machine.state import RunState, StepState
from trunkline.messages import StepError, decode_caller_message
from trunkline.workflow import FAILURE_VARIABLE, CompiledWorkflow, ExpressionError, Scope

_STEPS = "steps."


class RunScope:
    def __init__(self, state: RunState) -> None:
        self._state = state
        # A step that is done never gets another output: with items, what was read is kept for the next decision.
        self._read: dict[str, Json] = state.decoded if state.for_each else {}
        self._outer: dict[str, msgspec.Raw] | None = None

    def __call__(self, name: str) -> Json:
        if self._state.block is not None and not self._is_own(name):
            return self._outside(name)
        if name == "input":
            if name not in self._read:
                self._read[name] = _read(self._state.input, "input", "the run's input")
            return self._read[name]
        if name == "run":
            return {
                "id": self._state.id,
                "correlation_id": self._state.correlation_id,
                "message": self._message(),
            }
        if name == FAILURE_VARIABLE:
            return self._failure()
        return self.step_state(name.removeprefix(_STEPS))

    def _is_own(self, name: str) -> bool:
        if name == FAILURE_VARIABLE:
            # Otherwise it is that of the run around a block.
            return self._state.compensation is not None
        return name.startswith(_STEPS) and name.removeprefix(_STEPS) in self._state.workflow.steps

    def _outside(self, name: str) -> Json:
        """What a block reads from outside was captured when it began."""
        if name not in self._read:
            if self._outer is None:
                self._outer = self._state.outer_scope or {}
            self._read[name] = _read(bytes(self._outer[name]), name, name)
        return self._read[name]

    def _message(self) -> Json:
        message = self._state.message
        return None if message is None else decode_caller_message(message).shown()

    def _failure(self) -> Json:
        compensation = self._state.compensation
        if compensation is None:
            return None
        failure = compensation.failure
        return {"code": failure.code, "message": failure.message, "step": failure.step}

    def step_state(self, name: str) -> Json:
        """Of a step, or of an item of one."""
        step = self._state.steps.get(name)
        if step is None:
            return {"status": "PENDING", "output": None, "error": None}
        return {"status": step.status, "output": self._output(step), "error": _error(step.error)}

    def _output(self, step: StepState) -> Json:
        if (output := step.read_output()) is None:
            return None
        path = f"steps.{step.name}.output"
        if path not in self._read:
            self._read[path] = _read(output, path, f"the output of step {step.name}")
        return self._read[path]


class _ReadableRun(Protocol):
    """What expressions read of a run, in addition to its steps."""

    @property
    def id(self) -> RunId: ...
    @property
    def correlation_id(self) -> str: ...
    @property
    def input(self) -> bytes: ...
    @property
    def created_at(self) -> Instant: ...
    @property
    def message(self) -> bytes | None: ...


def completed_scope(run: _ReadableRun, steps: Iterable[StepState], workflow: CompiledWorkflow) -> Scope:
    """The same of a run that is over, as it is stored. Not of a block, whose scope is another."""
    return RunScope(
        RunState(
            id=run.id,
            workflow=workflow,
            correlation_id=run.correlation_id,
            input=run.input,
            created_at=run.created_at,
            message=run.message,
            steps={step.name: step for step in steps},
        )
    )


def evaluate_artifacts(workflow: CompiledWorkflow, scope: Scope) -> dict[str, Json]:
    """The artifacts that `publish` names, of a completed run; raises `ExpressionError`."""
    return {name: template.evaluate(scope) for name, template in workflow.publish.artifacts.items()}


def evaluate_message(workflow: CompiledWorkflow, scope: Scope) -> Json:
    """What `publish` says in place of the task, of a completed run; None: nothing. Raises `ExpressionError`."""
    template = workflow.publish.message
    return None if template is None else template.evaluate(scope)


class ItemScope:
    """The same for one item of a list, which can be read, too."""

    def __init__(
        self, scope: RunScope, item: Json, index: int, more: Mapping[str, Json] = MappingProxyType({})
    ) -> None:
        self._scope = scope
        self._own = {"item": item, "index": index, **more}

    def __call__(self, name: str) -> Json:
        return self._own[name] if name in self._own else self._scope(name)


class EventScope:
    """The same for the condition on an event, which can be read, too."""

    def __init__(self, scope: Scope, event: Json) -> None:
        self._scope = scope
        self._event = event

    def __call__(self, name: str) -> Json:
        return self._event if name == "event" else self._scope(name)


def _read(text: bytes, path: str, what: str) -> Json:
    # A dialect passes an output on as text that it has not read to the end: this may be the first who does.
    try:
        return decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        # ValueError: not UTF-8, or an integer with more digits than Python converts.
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
