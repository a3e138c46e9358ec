"""`trunkline inbox`: steps that wait for a person."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from trunkline.cli.answers import NO_ANSWER, AnswerOptions, OutcomeChoice, OutcomeOutput, resolution
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import Choice, given_text, has_terminal
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import (
    HERE,
    Cursor,
    Duration,
    Flag,
    LimitOrAll,
    Server,
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
from trunkline.durations import format_duration

if TYPE_CHECKING:
    from trunkline.api.resources.inbox import InboxItemResource
    from trunkline.cli import answer_prompts
    from trunkline.cli.rest.client import Client
    from trunkline.jsontypes import JsonObject
else:
    answer_prompts = lazy_module("trunkline.cli.answer_prompts")

Kind = Annotated[Literal["input", "auth", "outcome", "person", "compensation"], Choice]
ItemArgument = Annotated[str, Parameter(name="ITEM", help="ID of the item, or of a run, with STEP.")]
StepArgument = Annotated[str | None, Parameter(name="STEP", help="Step of the run.")]

_LONGEST_QUESTION = 60
_ANSWER_OPTIONS = {
    "outcome": "--outcome succeeded|failed|call_again",
    "compensation": "--outcome retry|skip|give_up",
    "person": "--answer 'YOUR ANSWER'",
}

app = App(name="inbox", help="List and answer steps that wait for a person.", version_flags=[])


@app.command(name="list")
def list_items(
    *,
    kind: Kind | None = None,
    workflow: str | None = None,
    mine: Flag = False,
    assignee: str | None = None,
    unassigned: Flag = False,
    overdue: Flag = False,
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
        human tasks (person), or compensations that have failed (compensation).
    workflow
        List only steps of this workflow, by name or ID.
    mine
        List only items that are assigned to you or to your groups, or that you have claimed.
    assignee
        List the same for another person or a group.
    unassigned
        List only items without assignees and without a claim.
    overdue
        List only items whose due time has passed.
    """
    query = {
        "kind": kind,
        "workflow": workflow,
        "mine": "true" if mine else None,
        "assignee": assignee,
        "unassigned": "true" if unassigned else None,
        "overdue": "true" if overdue else None,
    }
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
            _whose(item),
            date_time(item["since"]),
            date_time(item.get("due") or item["until"]),
            _one_line(item.get("title") or item["text"]),
        ]
        for item in page.items
    ]
    print_table(("ITEM", "KIND", "WORKFLOW", "AGENT", "FOR", "SINCE", "DUE", "QUESTION"), rows)
    if not rows:
        filters = any((kind, workflow, mine, assignee, unassigned, overdue))
        note("No item matches." if filters else "No step waits for a person.")
    flags = {name: True if value == "true" else value for name, value in query.items()}
    note_next_page(("inbox", "list"), flags, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(item: ItemArgument, step: StepArgument = None, /, *, server: Server = HERE) -> int:
    """Show what a step waits for: the question, its data, and how to answer it."""
    client = server.client()
    found = _found(client, item, step)
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
            ("claimed", _claim(found)),
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
    comments = client.comments(found["id"])
    if comments:
        print_text("\ncomments:")
    for comment in comments:
        print_text(f"{date_time(comment['at'])} {comment['by'] or 'unknown'}: {comment['text']}")
    print_text(f"\nanswer: {_how_to_answer(found)}")
    return Exit.OK


@app.command(name="claim")
def claim(item: ItemArgument, step: StepArgument = None, /, *, server: Server = HERE) -> int:
    """
    Claim an item, so that only you can answer it.

    The claim ends when the item is answered or released. Due times and timeouts still apply.
    """
    client = server.client()
    claimed = client.claim(_found(client, item, step)["id"])
    if server.json:
        print_json(claimed)
        return Exit.OK
    print_text(f"{claimed['id']} is claimed by {claimed.get('claimed_by')}")
    note(f"Answer it with: {_how_to_answer(claimed)}")
    return Exit.OK


@app.command(name="release")
def release(item: ItemArgument, step: StepArgument = None, /, *, server: Server = HERE) -> int:
    """Release an item that you have claimed. Admins can release the items of other people."""
    client = server.client()
    released = client.release(_found(client, item, step)["id"])
    if server.json:
        print_json(released)
        return Exit.OK
    print_text(f"{released['id']} is released")
    return Exit.OK


@app.command(name="comment")
def comment(
    item: ItemArgument,
    step: StepArgument = None,
    /,
    *,
    text: Annotated[str, Parameter(name="--text")],
    server: Server = HERE,
) -> int:
    """
    Comment on an item, for other people.

    The comment is not part of the answer. `inbox show` lists the comments.

    Parameters
    ----------
    text
        The comment. @FILE reads it from a file.
    """
    client = server.client()
    added = client.add_comment(_found(client, item, step)["id"], {"text": given_text(text)})
    if server.json:
        print_json(added)
        return Exit.OK
    note("The comment was added.")
    return Exit.OK


@app.command(name="link")
def link(
    item: ItemArgument,
    step: StepArgument = None,
    /,
    *,
    for_: Annotated[str, Parameter(name="--for")],
    expires_in: Duration = None,
    server: Server = HERE,
) -> int:
    """
    Create a link at which one person can answer without an API key.

    Everyone who has the link can answer in the person's name. It stops working when the item is answered.

    Parameters
    ----------
    for_
        Name of the person.
    expires_in
        How long the link works, such as 2d, up to 30d. Default: 7d.
    """
    client = server.client()
    found = _found(client, item, step)
    body: JsonObject = {"person": for_}
    if expires_in is not None:
        body["expires_in"] = format_duration(expires_in)
    created = client.create_answer_link(found["id"], body)
    if server.json:
        print_json(created)
        return Exit.OK
    print_text(created["url"])
    note(f"{created['person']} can answer until {date_time(created['expires_at'])}")
    return Exit.OK


@app.command(name="answer")
def answer(
    item: ItemArgument,
    step: StepArgument = None,
    /,
    *,
    answer_: AnswerOptions = NO_ANSWER,
    outcome: OutcomeChoice = None,
    output: OutcomeOutput = None,
    server: Server = HERE,
) -> int:
    """
    Answer a question or a human task, record the outcome of a call, or decide about a compensation that has failed.

    In a terminal, you are asked for what the options leave out: the fields of the form, one of the answers, a comment.
    """
    client = server.client()
    found = _found(client, item, step)
    asks = has_terminal() and not server.json
    if found["kind"] in {"outcome", "compensation"}:
        if outcome is None and not asks:
            raise _no_answer(found)
        body = answer_prompts.ask_outcome(found) if outcome is None else resolution(outcome, output)
        run = client.resolve(found["run_id"], found["step"], body)
    else:
        body = answer_.body(lambda: found)
        if body or not asks:
            if not body:
                raise _no_answer(found)
            run = client.reply(found["run_id"], found["step"], {**body, "item": found["id"]})
        else:
            run = answer_prompts.answer_in_terminal(client, found)
    print_run(run, json=server.json)
    note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK


def _found(client: Client, item: str, step: str | None) -> InboxItemResource:
    """By its id, or by a run and its step."""
    if step is None:
        return client.inbox_item(item)
    return client.waiting_step(item, step)


def _whose(item: InboxItemResource) -> str:
    claimed_by = item.get("claimed_by")
    return f"{claimed_by} (claimed)" if claimed_by else ", ".join(item.get("assignees", ()))


def _claim(item: InboxItemResource) -> str | None:
    claimed_by = item.get("claimed_by")
    return None if claimed_by is None else f"by {claimed_by} since {date_time(item.get('claimed_at'))}"


def _no_answer(found: InboxItemResource) -> CliError:
    missing = answer_prompts.missing_values(found)
    what = f": {', '.join(missing)}" if missing else ""
    return CliError(f"The answer is missing{what}", fix=_how_to_answer(found), exit_code=Exit.USAGE)


def _how_to_answer(found: InboxItemResource) -> str:
    how = _ANSWER_OPTIONS.get(found["kind"], "--text 'YOUR ANSWER'")
    options = found.get("options", ())
    if options:
        how = f"--answer {shlex.quote(options[0])}"
    if found.get("form") is not None:
        how = f"{how} --data '{{…}}'" if options else "--data '{…}'"
    return f"trunkline inbox answer {shlex.quote(found['id'])} {how}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUESTION else f"{line[: _LONGEST_QUESTION - 1]}…"
