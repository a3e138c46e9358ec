"""
`trunkline inbox`: steps that wait for a person.

An agent can also wait for the result of a function. The answer is then `{id, name, response}`, with the question's id
and name:

    question's data   {"id": "call-1", "name": "pay", "args": {…}}, or a list of such
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import Choice, given_json, given_text, given_value, read_json
from trunkline.cli.options import (
    HERE,
    Cursor,
    DataAnswer,
    Flag,
    LimitOrAll,
    PartsAnswer,
    Server,
    TextAnswer,
)
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_fields,
    print_json,
    print_table,
    print_text,
    print_value,
)
from trunkline.cli.rendering.run import print_run
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.api.resources.inbox import InboxItemResource
    from trunkline.cli.rest.client import Client
    from trunkline.jsontypes import Json, JsonObject

Kind = Annotated[Literal["input", "auth", "outcome", "person"], Choice]
Outcome = Annotated[Literal["succeeded", "failed", "call_again"], Choice]
ItemArgument = Annotated[str, Parameter(name="ITEM", help="ID of the item, or of a run, with STEP.")]
StepArgument = Annotated[str | None, Parameter(name="STEP", help="Step of the run.")]

_LONGEST_QUESTION = 60
_ANSWER_OPTIONS = {
    "outcome": "--outcome succeeded|failed|call_again",
    "person": "--answer 'YOUR ANSWER'",
}

app = App(name="inbox", help="List and answer steps that wait for a person.", version_flags=[])


@app.command(name="list")
def list_items(
    *,
    kind: Kind | None = None,
    workflow: str | None = None,
    limit: LimitOrAll = None,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    List steps that wait for a person, oldest first.

    Parameters
    ----------
    kind
        List only questions of agents (input), requests to authenticate (auth), calls with an unknown outcome (outcome),
        or human tasks (person).
    workflow
        List only steps of this workflow, by name or ID.
    """
    query = {"kind": kind, "workflow": workflow}
    page = server.client().inbox(query, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [
            item["id"],
            item["kind"],
            item["workflow"]["name"],
            item["agent"],
            date_time(item["since"]),
            date_time(item["until"]),
            _one_line(item.get("title") or item["text"]),
        ]
        for item in page.items
    ]
    print_table(("ITEM", "KIND", "WORKFLOW", "AGENT", "SINCE", "UNTIL", "QUESTION"), rows)
    if not rows:
        note("No step waits for a person.")
    note_next_page(("inbox", "list"), query, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(item: ItemArgument, step: StepArgument = None, /, *, server: Server = HERE) -> int:
    """Show a question with its data."""
    found = _found(server.client(), item, step)
    if server.json:
        print_json(found)
        return Exit.OK
    print_fields(
        [
            ("item", found["id"]),
            ("kind", found["kind"]),
            ("workflow", f"{found['workflow']['name']} (version {found['workflow']['version']})"),
            ("run", found["run_id"]),
            ("step", found["step"]),
            ("agent", found["agent"] or None),
            ("assignees", ", ".join(found.get("assignees", ())) or None),
            ("since", date_time(found["since"])),
            ("due", date_time(found.get("due")) or None),
            ("until", date_time(found["until"]) or None),
        ]
    )
    title = found.get("title")
    if title is not None and title != found["text"]:
        print_text(f"\n{title}")
    print_text(f"\n{found['text']}")
    if found["data"] is not None:
        print_text("\ndata:")
        print_value(found["data"])
    if found.get("options"):
        print_text(f"\noptions: {', '.join(found.get('options', ()))}")
    if found.get("form") is not None:
        print_text("\nform:")
        print_value(found.get("form"))
    print_text(f"\nanswer: {_how_to_answer(found)}")
    return Exit.OK


@app.command(name="answer")
def answer(
    item: ItemArgument,
    step: StepArgument = None,
    /,
    *,
    answer_: Annotated[str | None, Parameter(name="--answer")] = None,
    comment: str | None = None,
    text: TextAnswer = None,
    data: DataAnswer = None,
    parts: PartsAnswer = None,
    function_response_: Annotated[str | None, Parameter(name="--function-response")] = None,
    approve: Flag = False,
    reject: Flag = False,
    outcome: Outcome | None = None,
    output: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Answer a question, or record the outcome of a call.

    Parameters
    ----------
    answer_
        Answer to a human task: one of its options, if it has some.
    comment
        Comment on the answer to a human task.
    function_response_
        Result of the function that the agent waits for, as JSON. @FILE reads it from a file.
    approve
        Approve what the agent asks for.
    reject
        Reject what the agent asks for.
    outcome
        For a call with an unknown outcome: the agent did the work, failed, or should be called again.
    output
        With --outcome succeeded: the agent's output, as JSON or text. @FILE reads it from a file.
    """
    client = server.client()
    found = _found(client, item, step)
    if found["kind"] == "outcome":
        body = _resolution(found, outcome, output)
        run = client.resolve(found["run_id"], found["step"], body)
    else:
        if approve and reject:
            raise CliError(
                "--approve and --reject cannot be combined",
                fix="Leave one of them out.",
                exit_code=Exit.USAGE,
            )
        body = verdict(found, approved=approve) if approve or reject else {}
        if answer_ is not None:
            body["answer"] = given_text(answer_)
        if comment is not None:
            body["comment"] = given_text(comment)
        if text is not None:
            body["text"] = given_text(text)
        if data is not None:
            body["data"] = given_json(data)
        if parts is not None:
            body["parts"] = read_json(parts)
        if function_response_ is not None:
            body["data"] = function_response(found, given_json(function_response_))
        if not body:
            raise _no_answer(found)
        run = client.reply(found["run_id"], found["step"], {**body, "item": found["id"]})
    print_run(run, json=server.json)
    note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK


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


def _found(client: Client, item: str, step: str | None) -> InboxItemResource:
    """By its id, or by a run and its step."""
    if step is None:
        return client.inbox_item(item)
    return client.waiting_step(item, step)


def _resolution(found: InboxItemResource, outcome: Outcome | None, output: str | None) -> JsonObject:
    if outcome is None:
        raise _no_answer(found)
    body: JsonObject = {"outcome": outcome}
    if output is not None:
        body["output"] = given_value(output)
    return body


def _no_answer(found: InboxItemResource) -> CliError:
    return CliError("The answer is missing", fix=_how_to_answer(found), exit_code=Exit.USAGE)


def _how_to_answer(found: InboxItemResource) -> str:
    how = _ANSWER_OPTIONS.get(found["kind"], "--text 'YOUR ANSWER'")
    return f"trunkline inbox answer {shlex.quote(found['id'])} {how}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUESTION else f"{line[: _LONGEST_QUESTION - 1]}…"


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
