"""A run as `runs show` and the end of a followed run print it: steps, errors with fixes, open questions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trunkline.cli.rendering.output import (
    Cell,
    harmless,
    print_fields,
    print_json,
    print_table,
    print_text,
    print_value,
    status_cell,
)
from trunkline.cli.rendering.times import clock_time, date_time, duration_between, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunkline.api.resources.runs import (
        ItemsResource,
        RunFacts,
        RunResource,
        StepFailure,
        StepResource,
        WaitingForResource,
    )

_MOST_MESSAGE_CHARACTERS = 500
_STEP_COLUMNS = ("STEP", "STATUS", "AGENT", "ATTEMPTS", "TIME", "DIALECT", "DETAIL")


def show_run(run: RunResource) -> None:
    print_fields(_fields(run))
    print_text("")
    print_steps(run["steps"])
    for text in error_lines(run) + choice_lines(run) + question_lines(run):
        print_text(text)
    if run["output"] is not None:
        print_text("\noutput:")
        print_value(run["output"])


def print_steps(steps: Iterable[StepResource]) -> None:
    print_table(_STEP_COLUMNS, [_step_row(step) for step in steps])


def print_run(run: RunResource, *, json: bool) -> None:
    """What a command that changes a run answers with: the run, or just enough to go on with it."""
    if json:
        print_json(run)
    else:
        print_fields([("run", run["id"]), ("status", run["status"])])


def error_lines(run: RunResource) -> list[str]:
    """Every error with what to do about it; the run's own first, unless it is a step's."""
    lines: list[str] = []
    shown: set[str] = set()
    for name, error in [*((step["name"], step["error"]) for step in run["steps"]), ("run", run["error"])]:
        if error and error["message"] not in shown:
            shown.add(error["message"])
            lines += ["", *_error(name, error)]
    return lines


def choice_lines(run: RunResource) -> list[str]:
    """Which agents the steps have chosen, and what they have compared."""
    lines: list[str] = []
    for step in run["steps"]:
        routing = step.get("routing")
        if routing is None or routing["reason"] is None:
            continue
        lines += ["", harmless(f"{step['name']} calls {routing['agent']} ({routing['reason']})")]
        lines += [
            harmless(f"  {each['agent']}: {each['status']}, {each['reason']}")
            for each in routing["candidates"]
        ]
        if routing["others"]:
            lines.append(f"  {routing['others']} others")
        if routing["tried"]:
            lines.append(harmless(f"  tried before: {', '.join(routing['tried'])}"))
    return lines


def question_lines(run: RunResource) -> list[str]:
    """What the run waits for a person to say, with the command that says it."""
    lines: list[str] = []
    for step in run["steps"]:
        waiting_for = step["waiting_for"]
        if step["status"] == "OUTCOME_UNKNOWN":
            lines += _question(step["name"], run["id"], step["name"], "outcome", "", ())
            continue
        if not waiting_for:
            continue
        inside = waiting_for.get("questions", ())
        for question in inside[1:] and inside:
            # An answer to the step itself would be ambiguous.
            name = f"{step['name']} ({question['step']} inside)"
            lines += _question(
                name, question["run_id"], question["step"], question["kind"], question["text"], ()
            )
        if len(inside) <= 1:
            text = waiting_for.get("title") or waiting_for["text"]
            options = waiting_for.get("options", ())
            lines += _question(step["name"], run["id"], step["name"], waiting_for["kind"], text, options)
        if waiting_for.get("more_questions"):
            lines += ["", "List all: trunkline inbox list"]
    return lines


def _question(name: str, run: str, step: str, kind: str, text: str, options: Sequence[str]) -> list[str]:
    place = f"{run} {shlex.quote(step)}"
    match kind:
        case "outcome":
            return [
                "",
                f"{name}: it is unknown whether the agent did the work",
                f"resolve: trunkline runs resolve {place} --outcome succeeded|failed|call_again",
            ]
        case "person":
            answer = f"--answer {shlex.quote(options[0])}" if options else "--answer 'YOUR ANSWER'"
            return ["", f"{name} asks: {text}", f"answer: trunkline inbox answer {place} {answer}"]
        case "input" | "auth":
            command = f"reply: trunkline runs reply {place} --text 'YOUR ANSWER'"
            return ["", f"{name} asks: {text}", command]
        case _:
            return []


def _fields(run: RunResource) -> list[tuple[str, object]]:
    workflow = run["workflow"]
    return [
        ("run", run["id"]),
        ("status", run["status"]),
        ("workflow", f"{workflow['name']} v{workflow['version']}"),
        ("retry of", run.get("retry_of")),
        ("parent", _parent(run)),
        ("block", run.get("block")),
        ("correlation id", run["correlation_id"]),
        ("started by", run.get("started_by")),
        ("called over", _called_over(run)),
        ("message", _message(run)),
        ("trigger", run.get("trigger")),
        ("labels", labels_text(run)),
        ("created", date_time(run["created_at"])),
        ("started", date_time(run["started_at"])),
        ("finished", date_time(run["finished_at"])),
        ("took", duration_between(run["started_at"], run["finished_at"])),
        ("cancel requested", date_time(run.get("cancel_requested_at"))),
    ]


def labels_text(run: RunFacts) -> str | None:
    """As the filter of a list has them; None if there are none."""
    labels = run.get("labels") or {}
    return harmless(", ".join(f"{key}:{value}" for key, value in labels.items())) or None


def _called_over(run: RunResource) -> str | None:
    message = run.get("message")
    if message is None:
        return None
    key = f", with the API key {message['key']}" if message["key"] else ""
    return harmless(f"A2A {message['version']}, as {message['publication']}{key}")


def _message(run: RunResource) -> str | None:
    """What the caller has written; what is not text by its kind."""
    message = run.get("message")
    if message is None:
        return None
    shown: list[str] = []
    for part in message["parts"]:
        if "text" in part:
            shown.append(str(part["text"]))
        elif "data" in part:
            shown.append(json.dumps(part["data"], ensure_ascii=False))
        else:
            shown.append(f"[file {part.get('filename') or part.get('url') or part.get('mediaType') or ''}]")
    return harmless(f"{message['message_id']}: {_shortened(shown)}")


def _shortened(texts: list[str]) -> str:
    """On one line."""
    words = " ".join(" ".join(texts).split())
    return words if len(words) <= _MOST_MESSAGE_CHARACTERS else f"{words[:_MOST_MESSAGE_CHARACTERS]}…"


def _parent(run: RunResource) -> str | None:
    parent = run.get("parent")
    return None if parent is None else f"{parent['run_id']}, step {parent['step']}"


def _step_row(step: StepResource) -> list[str | Cell]:
    return [
        step["name"],
        status_cell(step["status"]),
        _work(step),
        str(step["attempts"] or ""),
        duration_between(step["started_at"], step["finished_at"]),
        step["protocol"] or "",
        _why(step),
    ]


def _work(step: StepResource) -> str:
    return (
        f"workflow {step.get('workflow', '')}"
        if step["kind"] == "workflow"
        else step["agent"] or ("block" if step["kind"] == "steps" else step["kind"])
    )


def _why(step: StepResource) -> str:
    if step["waiting_for"]:
        return _waiting(step["waiting_for"])
    if step["error"]:
        return step["error"]["message"]
    if "from_cache" in step:
        return f"from cache: run {step['from_cache']['run_id']}"
    child = step.get("child")
    if child is not None:
        round_ = [f"round {step['round']},"] if "round" in step else []
        return " ".join(
            [*round_, "run", child["run_id"], *([f"is {child['status']}"] if "status" in child else [])]
        )
    items = step.get("items")
    if items is not None:
        return _items(items)
    repairs = step["repairs"]
    corrected = [f"corrected its output {repairs} time{'s' * (repairs > 1)}"] if repairs else []
    return "; ".join([*corrected, *step["warnings"]])


def _items(items: ItemsResource) -> str:
    others = [
        f"{number} {state}"
        for state, number in (
            ("failed", items["failed"]),
            ("skipped", items["skipped"]),
            ("waiting", items["waiting"]),
            ("running", items["running"]),
        )
        if number
    ]
    return ", ".join([f"{items['completed']} of {items['total']} items", *others])


def _waiting(waiting_for: WaitingForResource) -> str:
    until = parse_time(waiting_for["until"])
    return f"{waiting_for['text']} (until {clock_time(until)})" if until else waiting_for["text"]


def _error(name: str, error: StepFailure) -> list[str]:
    return [f"{name} failed with {error['code']}: {error['message']}", f"fix: {error['fix']}"]
