"""
What a person answers a waiting step with: the options of `runs reply` and `inbox answer`.

An agent can also wait for the result of a function. The answer is then `{id, name, response}`, with the question's id
and name:

    question's data   {"id": "call-1", "name": "pay", "args": {…}}, or a list of such
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import Choice, given_json, given_text, given_value, read_json
from trunkline.cli.options import DataAnswer, Flag, PartsAnswer, TextAnswer

if TYPE_CHECKING:
    from trunkline.api.resources.inbox import InboxItemResource
    from trunkline.jsontypes import Json, JsonObject

OutcomeChoice = Annotated[
    Literal["succeeded", "failed", "call_again", "retry", "skip", "give_up"] | None,
    Choice,
    Parameter(
        help="For a call with an unknown outcome: succeeded, failed, or call_again. For a compensation that has failed:"
        " retry, skip (nothing is left to undo), or give_up (end the run)."
    ),
]
OutcomeOutput = Annotated[
    str | None,
    Parameter(
        help="With --outcome succeeded: the agent's output, as JSON or text. @FILE reads it from a file."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class AnswerOptions:
    """The answer to a question of an agent, or to a human task."""

    answer: Annotated[
        str | None,
        Parameter(name="--answer", help="Answer to a human task. If it has options, one of them."),
    ] = None
    comment: Annotated[
        str | None, Parameter(name="--comment", help="Comment on the answer to a human task.")
    ] = None
    text: TextAnswer = None
    data: DataAnswer = None
    parts: PartsAnswer = None
    function_response: Annotated[
        str | None,
        Parameter(
            name="--function-response",
            metavar="JSON",
            help="Result of the function that the agent waits for, as JSON. @FILE reads it from a file.",
        ),
    ] = None
    approve: Annotated[Flag, Parameter(help="Approve what the agent or the human task asks for.")] = False
    reject: Annotated[Flag, Parameter(help="Reject what the agent or the human task asks for.")] = False

    def body(self, find_item: Callable[[], InboxItemResource]) -> JsonObject:
        """The request, empty without any option. `find_item` is called if the answer depends on the question."""
        if self.approve and self.reject:
            raise CliError(
                "--approve and --reject cannot be combined",
                fix="Leave one of them out.",
                exit_code=Exit.USAGE,
            )
        body = verdict(find_item(), approved=self.approve) if self.approve or self.reject else {}
        if self.answer is not None:
            body["answer"] = given_text(self.answer)
        if self.comment is not None:
            body["comment"] = given_text(self.comment)
        if self.text is not None:
            body["text"] = given_text(self.text)
        if self.data is not None:
            body["data"] = given_json(self.data)
        if self.parts is not None:
            body["parts"] = read_json(self.parts)
        if self.function_response is not None:
            body["data"] = function_response(find_item(), given_json(self.function_response))
        return body


NO_ANSWER = AnswerOptions()


def resolution(outcome: str, output: str | None) -> JsonObject:
    """The request that records the outcome of a call."""
    body: JsonObject = {"outcome": outcome}
    if output is not None:
        body["output"] = given_value(output)
    return body


def function_response(item: InboxItemResource, given: Json) -> JsonObject:
    """`given`: what the function returned, or the whole `{id?, name?, response}`."""
    if isinstance(given, dict) and "response" in given and given.keys() <= {"id", "name", "response"}:
        named, response = given, given["response"]
    else:
        named, response = {}, given
    call = _call_of(item, named)
    # An agent's framework takes an object only.
    result: Json = response if isinstance(response, dict) else {"result": response}
    return {"id": call["id"], "name": call["name"], "response": result}


def verdict(item: InboxItemResource, *, approved: bool) -> JsonObject:
    """The decision: an option of a human task, what a function that asks for a confirmation returns, or text."""
    if item["kind"] == "person":
        return {"answer": "approve" if approved else "reject"}
    if calls_in(item["data"]):
        return {"data": function_response(item, {"confirmed": approved})}
    return {"text": "approved" if approved else "rejected", "data": {"approved": approved}}


def calls_in(data: Json) -> list[JsonObject]:
    candidates = data if isinstance(data, list) else [data]
    return [
        call
        for call in candidates
        if isinstance(call, dict) and isinstance(call.get("id"), str) and isinstance(call.get("name"), str)
    ]


def _call_of(item: InboxItemResource, named: JsonObject) -> JsonObject:
    calls = [
        call
        for call in calls_in(item["data"])
        if all(named.get(field) in (None, call[field]) for field in ("id", "name"))
    ]
    match calls:
        case [call]:
            return call
        case []:
            raise CliError(
                "The agent does not wait for this function",
                fix=f"See the question: trunkline inbox show {item['id']}",
                exit_code=Exit.USAGE,
            )
        case _:
            names = ", ".join(f"{call['name']} ({call['id']})" for call in calls)
            raise CliError(
                f"The agent waits for several functions: {names}",
                fix='Name one: --function-response \'{"id": "…", "response": {…}}\'',
                exit_code=Exit.USAGE,
            )
