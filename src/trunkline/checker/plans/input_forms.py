"""
Which form of the input an agent reads. Sent only with --active, because the agent treats messages as work.

    json   {"kind": "text", "text": "{\\"query\\": \\"…\\"}"}                    the whole input
    text   {"kind": "text", "text": "…"}, "metadata": {"query": "…"}            one text of it; the rest is in metadata
    data   {"kind": "data", "data": {"query": "…"}}                             only if this is configured

Each form carries two inputs, the second with a mark. A form is understood if the mark comes back, or if the answer
changes. An agent that looks elsewhere gives the same answer to both, and a run would not notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline.agents.check_reports import CheckedInputMode, CheckSample
from trunkline.checker.check_plan import PlannedCheck, RuleResult, met, not_applicable, violated
from trunkline.checker.exchanges import ProbeExchange, ProbeExchanges, ProbeRequest
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import (
    Failed,
    ProtocolAdapter,
    ProtocolAdapterFactory,
    ProtocolTranslationError,
    Succeeded,
)

# How the answers to the two inputs of a form relate to them. `verbatim`: the JSON came back as it was sent, as words.
_Reading = Literal["read", "verbatim", "changes", "same", "failed", "unknown"]

_WORDS: Mapping[CheckedInputMode, str] = {
    "json": "the whole input as JSON text",
    "text": "the text of the input",
    "data": "the input as a data part",
}
_TEXT_FIELDS = ("text", "query")
# What an answer says, in the form of every dialect's output.
_SAID = ("text", "data")


class InputForms:
    """The probes of one check, and what their answers show."""

    def __init__(self, protocol: str, config: JsonObject, nonce: str, sample: CheckSample) -> None:
        mode = config.get("input_mode", "text")
        self._configured: CheckedInputMode = (
            "json" if mode == "json" else "data" if mode == "data" else "text"
        )
        self._is_chosen = "input_mode" in config
        self._mark = f"mark-{nonce}"
        forms: list[CheckedInputMode] = ["json", "text", *(["data"] if self._configured == "data" else [])]
        self._adapters: dict[CheckedInputMode, ProtocolAdapter] = {
            form: ProtocolAdapterFactory.create_adapter(protocol, {**config, "input_mode": form})
            for form in forms
        }
        self._inputs = (sample.input, _marked(sample.input, self._mark))
        self._nonce = nonce

    def probes(self) -> list[ProbeRequest]:
        found: list[ProbeRequest] = []
        for form, adapter in self._adapters.items():
            for number in range(len(self._inputs)):
                request = adapter.encode(self._task(form, number))
                found.append(
                    ProbeRequest(
                        name=_name(form, number),
                        body=request.body,
                        headers=request.headers,
                        path=request.path,
                        active=True,
                    )
                )
        return found

    def planned_checks(self) -> list[PlannedCheck]:
        return [
            # Without a configured mode there is still time to choose the one that fits.
            PlannedCheck(
                id="input-form", rule=self._form_fits, level="required" if self._is_chosen else "recommended"
            ),
            PlannedCheck(id="input-used", rule=self._input_used, level="recommended"),
        ]

    def understood(self, exchanges: ProbeExchanges) -> list[CheckedInputMode]:
        """The modes in which the agent reads its input; empty: that is not clear."""
        readings = self._readings(exchanges)
        for wanted in ("read", "verbatim", "changes"):
            found: list[CheckedInputMode] = [form for form, reading in readings.items() if reading == wanted]
            if found:
                return found
        return []

    def _form_fits(self, exchanges: ProbeExchanges) -> RuleResult:
        understood = self.understood(exchanges)
        if not understood:
            return not_applicable("No answer shows which form of the input the agent reads.")
        sent = self._second(self._configured, exchanges)
        words = " and ".join(f"{_WORDS[form]} (input_mode: {form})" for form in understood)
        if self._configured in understood:
            return met(f"The agent reads {words}.", *sent)
        return violated(
            f"The agent reads {words}, but not {_WORDS[self._configured]} (input_mode: {self._configured}).",
            *sent,
            *self._second(understood[0], exchanges),
        )

    def _input_used(self, exchanges: ProbeExchanges) -> RuleResult:
        readings = set(self._readings(exchanges).values())
        if readings == {"same"}:
            return violated(
                "The agent gave the same answer to two different inputs, in every form.",
                *self._second("json", exchanges),
            )
        if self.understood(exchanges):
            return met("The answer depends on the input.", *self._second("json", exchanges))
        return not_applicable("The answers do not show whether the agent uses its input.")

    def _readings(self, exchanges: ProbeExchanges) -> dict[CheckedInputMode, _Reading]:
        return {form: self._reading(form, exchanges) for form in self._adapters}

    def _reading(self, form: CheckedInputMode, exchanges: ProbeExchanges) -> _Reading:
        first, second = (self._answer(form, number, exchanges.get(_name(form, number))) for number in (0, 1))
        if first is None or second is None:
            return "unknown"
        if self._mark in second.said:
            sent = encode(encode(self._inputs[1]).decode()).decode()[1:-1]
            return "verbatim" if form == "json" and sent in second.said else "read"
        if not first.succeeded and not second.succeeded:
            return "failed"
        return "same" if first == second else "changes"

    def _answer(self, form: CheckedInputMode, number: int, exchange: ProbeExchange | None) -> _Answer | None:
        """None: it was not sent, or the task is not over."""
        if exchange is None:
            return None
        if exchange.answer is None:
            return _Answer("", succeeded=False)
        try:
            outcome = self._adapters[form].decode(exchange.answer, self._task(form, number))
        except ProtocolTranslationError as exc:
            return _Answer(str(exc), succeeded=False)
        match outcome:
            case Succeeded(output=output):
                return _Answer(encode(_said(decode(output))).decode(), succeeded=True)
            case Failed(error=error):
                return _Answer(error.message, succeeded=False)
            case _:
                return None

    def _second(self, form: CheckedInputMode, exchanges: ProbeExchanges) -> list[ProbeExchange]:
        name = _name(form, 1)
        return [exchanges[name]] if name in exchanges else []

    def _task(self, form: CheckedInputMode, number: int) -> AgentTask:
        return AgentTask(task_id=f"check-{self._nonce}/{form}/{number}", input_data=self._inputs[number])


class _Answer(msgspec.Struct, frozen=True):
    said: str
    succeeded: bool


def _name(form: CheckedInputMode, number: int) -> str:
    return f"form-{form}-{number + 1}"


def _marked(given: JsonObject, mark: str) -> JsonObject:
    """Another input of the same kind, by which its answer can be recognized."""
    texts = [name for name, value in given.items() if isinstance(value, str)]
    name = next((name for name in _TEXT_FIELDS if name in texts), texts[0] if texts else "text")
    return {**given, name: f"{given.get(name, '')} {mark}".strip()}


def _said(output: Json) -> Json:
    if isinstance(output, dict) and any(name in output for name in _SAID):
        return {name: output[name] for name in _SAID if name in output}
    return output
