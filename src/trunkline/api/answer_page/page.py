"""
The HTML of the answer page.

It loads nothing: the style is part of the page, and there are no scripts. Everything that a workflow or an agent wrote
is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape

from starlette.responses import HTMLResponse

from trunkline.api.answer_page.form import STAY_BUTTON, SchemaFormPage
from trunkline.clock import rfc3339
from trunkline.jsontypes import encode
from trunkline.services.runs.inbox import InboxEntry

_STYLE = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0 auto;padding:1rem;max-width:40rem;color:#16181d;background:#fff}
h1{font-size:1.4rem;line-height:1.3;margin:.5rem 0}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
.hint{color:#5b6270;font-size:.9rem;margin:0;display:block}
label .hint{display:inline}
label,legend{font-weight:600}
input,select,textarea{display:block;box-sizing:border-box;width:100%;margin-top:.25rem;padding:.6rem;font:inherit;
color:inherit;background:transparent;border:1px solid #767d8c;border-radius:.4rem}
.box{display:flex;gap:.6rem;align-items:center}
.box input{width:1.4rem;height:1.4rem;margin:0}
fieldset{border:1px solid #b9bec9;border-radius:.4rem;margin:1rem 0;padding:.5rem 1rem}
button{font:inherit;font-weight:600;padding:.7rem 1.2rem;min-height:2.75rem;margin:.25rem .5rem .25rem 0;
border-radius:.4rem;border:1px solid #1f4fd1;background:#1f4fd1;color:#fff}
.small{font-weight:400;padding:.4rem .8rem;min-height:2.25rem;color:inherit;background:transparent;border-color:#767d8c}
.away{position:absolute;left:-100rem}
.item{border-left:.2rem solid #b9bec9;padding-left:.75rem;margin:.5rem 0}
.wrong{border-left:.3rem solid #b3261e;padding:.25rem 1rem}
:focus-visible{outline:3px solid #1f4fd1;outline-offset:2px}
@media(prefers-color-scheme:dark){body{color:#e7e9ee;background:#14161a}.hint{color:#a9b0be}
button{background:#9db8ff;border-color:#9db8ff;color:#10131a}
.small{background:transparent;border-color:#a9b0be;color:inherit}:focus-visible{outline-color:#9db8ff}
.wrong{border-color:#ff8a80}}
"""
_STYLE_DIGEST = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    # The address is a secret. Without any referrer, a browser would not say which site the form comes from.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
}


def page(title: str, content: str, status: int = 200) -> HTMLResponse:
    """`title` is text, `content` is HTML."""
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main>{content}</main></body></html>"
    )
    return HTMLResponse(html, status, HEADERS)


def message_page(title: str, text: str, status: int = 200) -> HTMLResponse:
    return page(title, f'<h1>{escape(title)}</h1><p class="text">{escape(text)}</p>', status)


def question_page(
    entry: InboxEntry,
    person: str,
    given: Mapping[str, str],
    problems: Sequence[str] = (),
    status: int = 200,
) -> HTMLResponse:
    """`given`: what was sent before, if it was refused because of `problems`."""
    waiting, task = entry.waiting_for, entry.waiting_for.human_task
    title = task.title if task is not None and task.title else f"A question of {entry.agent}"
    parts = [f"<h1>{escape(title)}</h1>"]
    if waiting.text != title:
        parts.append(f'<p class="text">{escape(waiting.text)}</p>')
    if waiting.data is not None:
        parts.append(f'<pre class="text">{escape(encode(waiting.data).decode())}</pre>')
    facts = [f"Workflow {entry.workflow_name}", f"you answer as {person}"]
    if task is not None and task.due is not None:
        facts.append(f"due {rfc3339(task.due)}")
    if waiting.until is not None:
        facts.append(f"until {rfc3339(waiting.until)}")
    parts.append(f'<p class="hint">{escape(", ".join(facts))}</p>')
    if problems:
        items = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
        parts.append(
            f'<div class="wrong" role="alert"><p>Your answer was not accepted:</p><ul>{items}</ul></div>'
        )
    has_files = entry.form is not None and SchemaFormPage(entry.form).has_files
    encoding = ' enctype="multipart/form-data"' if has_files else ""
    parts.append(f'<form method="post"{encoding}>{_fields(entry, given)}</form>')
    return page(title, "".join(parts), status)


def _fields(entry: InboxEntry, given: Mapping[str, str]) -> str:
    task = entry.waiting_for.human_task
    form = None if entry.form is None else SchemaFormPage(entry.form)
    if task is None or entry.waiting_for.kind != "person":
        return (
            '<p><label for="text">Your answer</label>'
            f'<textarea rows="6" id="text" name="text" required>{escape(given.get("text", ""))}</textarea></p>'
            "<button>Send</button>"
        )
    # With a single button, Enter presses that.
    parts = [STAY_BUTTON] if task.options or (form is not None and form.has_lists) else []
    if form is not None:
        parts.append(form.html(given))
    if not task.options and entry.form is None:
        parts.append(
            '<p><label for="answer">Your answer</label>'
            f'<textarea rows="4" id="answer" name="answer" required>{escape(given.get("answer", ""))}</textarea></p>'
        )
    parts.append(
        '<p><label for="comment">Comment <span class="hint">(optional)</span></label>'
        f'<textarea rows="3" id="comment" name="comment">{escape(given.get("comment", ""))}</textarea></p>'
    )
    if task.options:
        buttons = "".join(
            f'<button name="answer" value="{escape(option)}">{escape(option)}</button>'
            for option in task.options
        )
        return "".join(parts) + f"<p>{buttons}</p>"
    return "".join(parts) + "<button>Send</button>"
