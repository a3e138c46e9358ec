"""The dialog of `trunkline inbox answer`: shows what a step waits for, and asks for the answer until it is accepted."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError
from trunkline.cli.form_prompts import FieldError, FormPrompts, Prompter
from trunkline.workflow.actions.form_fields import FormField, form_of_schema

if TYPE_CHECKING:
    from trunkline.api.resources.inbox import InboxItemResource
    from trunkline.api.resources.runs import RunResource
    from trunkline.cli.rest.client import Client
    from trunkline.jsontypes import JsonObject

_DECISIONS = {
    "retry": "Try the compensation again",
    "skip": "Skip it: nothing is left to undo",
    "give_up": "Give up: end the run, and leave the rest as it is",
}
_OUTCOMES = {
    "succeeded": "The agent did the work",
    "failed": "The agent failed",
    "call_again": "Call the agent again",
}


def answer_in_terminal(client: Client, item: InboxItemResource) -> RunResource:
    """Of a question or a human task; the run as it goes on."""
    return _AnswerDialog(client, item, Prompter()).run()


def ask_outcome(item: InboxItemResource) -> JsonObject:
    """What became of a call, or what follows when a compensation has failed: the request that says so."""
    prompter = Prompter()
    _introduce(item, prompter)
    failed = item["kind"] == "compensation"
    choices = _DECISIONS if failed else _OUTCOMES
    chosen = prompter.choose("Decision" if failed else "Outcome", list(choices.values()))
    return {"outcome": list(choices)[chosen]}


def missing_values(item: InboxItemResource) -> list[str]:
    """What an answer needs at least, for a person who has no terminal to be asked in."""
    found: list[str] = []
    options = item.get("options", ())
    if options:
        found.append(f"answer (one of {', '.join(options)})")
    form = item.get("form")
    if isinstance(form, dict):
        root = form_of_schema(form)
        found += [f"data.{field.name} ({_kind_of(field)})" for field in root.fields if field.required]
    return found


def _kind_of(field: FormField) -> str:
    if field.choices:
        return f"one of {', '.join(choice.title for choice in field.choices[:10])}"
    return field.format or field.kind


def _introduce(item: InboxItemResource, prompter: Prompter) -> None:
    title = item.get("title")
    if title and title != item["text"]:
        prompter.say(title)
    prompter.say(item["text"])
    prompter.say("")


class _AnswerDialog:
    def __init__(self, client: Client, item: InboxItemResource, prompter: Prompter) -> None:
        self._client = client
        self._item = item
        self._prompter = prompter
        form = item.get("form")
        self._form = FormPrompts(form, prompter, self._upload) if isinstance(form, dict) else None

    def run(self) -> RunResource:
        _introduce(self._item, self._prompter)
        if self._item["kind"] != "person":
            return self._send({"text": self._line("Answer")})
        body: JsonObject = {}
        if self._form is not None:
            body["data"] = self._form.fill_in()
        body |= self._answer()
        comment = self._prompter.ask("Comment (optional)").strip()
        if comment:
            body["comment"] = comment
        while True:
            try:
                return self._send(body)
            except ApiError as error:
                if self._form is None or not (wrong := _of_form(error)):
                    raise
                body["data"] = self._form.correct(wrong)

    def _answer(self) -> JsonObject:
        options = list(self._item.get("options", ()))
        if options:
            return {"answer": options[self._prompter.choose("Answer", options)]}
        if self._form is not None:
            return {}
        return {"answer": self._line("Answer")}

    def _line(self, label: str) -> str:
        while not (text := self._prompter.ask(label).strip()):
            self._prompter.say(f"! {label} is required.")
        return text

    def _send(self, body: JsonObject) -> RunResource:
        item = self._item
        return self._client.reply(item["run_id"], item["step"], {**body, "item": item["id"]})

    def _upload(self, path: str) -> JsonObject:
        file = Path(path.strip()).expanduser()
        try:
            content = file.read_bytes()
        except OSError as exc:
            raise CliError(f"Cannot read {file}: {exc.strerror}", exit_code=Exit.USAGE) from exc
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return self._client.upload_file(self._item["id"], file.name, media_type, content)


def _of_form(error: ApiError) -> Sequence[FieldError]:
    """What the server says of the values of the form."""
    return [
        FieldError(each.path.removeprefix("data").removeprefix("."), each.message)
        for each in error.diagnostics
        if each.path == "data" or each.path.startswith("data.") or each.path.startswith("data[")
    ]
