"""
The page at which a person answers a question by link.

It needs no API key: the link is signed, and names the question and the person. The answers are HTML, problems included,
because people read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qsl

from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trunkline.api.answer_page.form import SchemaFormPage, edited, uploaded_field
from trunkline.api.answer_page.multipart import SentFile, boundary_of, read_multipart
from trunkline.api.answer_page.page import HEADERS, message_page, question_page
from trunkline.api.bodies import read_body
from trunkline.api.correlation_ids import find_header
from trunkline.api.parameters import Parameters
from trunkline.api.routing import Body, Operation, ResponseSpec, operation
from trunkline.api.services import Services
from trunkline.errors import Conflict, Invalid, NotAllowed, NotFound, TooManyRequests
from trunkline.jsontypes import JsonObject, encode
from trunkline.machine.inputs import ReplyMessage
from trunkline.services.operations.audit_log import acting
from trunkline.services.people.answer_links import ANSWER_PATH, AnswerLink
from trunkline.services.people.answers import GivenAnswer, given_answer
from trunkline.services.people.files import MAX_FILE_BYTES
from trunkline.services.runs.inbox import InboxEntry

MAX_BODY_BYTES = 256 * 1024
_MAX_FIELDS = 1_000
HTML = "text/html"
FORM = "application/x-www-form-urlencoded"
FILES = "multipart/form-data"


class AnswerParameters(Parameters, frozen=True, kw_only=True):
    token: Annotated[str, Meta(description="Signed token that identifies the question and the person.")]


class AnswerRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._links = services.answer_links
        self._max_upload = min(MAX_FILE_BYTES + MAX_BODY_BYTES, services.limits.max_body_bytes)

    async def show(self, _request: Request, given: AnswerParameters) -> Response:
        """Show the page at which a person answers a question by link."""
        try:
            link = self._links.find(given.token)
            entry = await self._services.inbox.get(link.item)
        except TooManyRequests as exc:
            return message_page("Too many requests", exc.message, 429)
        except NotFound as exc:
            return await self._closed(given.token, exc)
        if _has_answered(entry, link):
            return _thanks(entry)
        return question_page(entry, link.person, {})

    async def answer(self, request: Request, given: AnswerParameters) -> Response:
        """Answer a question by link, with the form of the page."""
        content_type = (find_header(request.scope["headers"], b"content-type") or b"").decode("latin-1")
        boundary = boundary_of(content_type)
        body = await read_body(request, MAX_BODY_BYTES if boundary is None else self._max_upload)
        try:
            link = self._links.find(given.token)
            entry = await self._services.inbox.get(link.item)
        except TooManyRequests as exc:
            return message_page("Too many requests", exc.message, 429)
        except NotFound as exc:
            return await self._closed(given.token, exc, status=409)
        fields, files = (_fields(body), []) if boundary is None else read_multipart(body, boundary)
        try:
            with acting(link.person, via="link"):
                fields = await self._with_files(link, entry, fields, files)
                if (changed := edited(fields)) is not None:
                    # A list has one item more or less; nothing was answered.
                    return question_page(entry, link.person, changed)
                await self._send(link, entry, fields)
        except Invalid as exc:
            problems = [f"{finding.path}: {finding.message}" for finding in exc.findings] or [exc.message]
            return question_page(entry, link.person, fields, problems, 422)
        except NotAllowed as exc:
            return message_page("You cannot answer", exc.message, 403)
        except (Conflict, NotFound) as exc:
            return await self._conflict(link, exc)
        if entry.waiting_for.kind != "person":
            return message_page("Thank you", "Your answer was recorded. You can close this page.")
        # Reloading the page must not send the answer again.
        # Relative to this address: a proxy may have removed a path of `public_url`.
        return RedirectResponse(given.token, 303, HEADERS)

    async def _with_files(
        self, link: AnswerLink, entry: InboxEntry, fields: Mapping[str, str], files: Sequence[SentFile]
    ) -> dict[str, str]:
        """The fields, with what became of the files: they are kept if the form is shown again."""
        found = dict(fields)
        if files and (entry.form is None or not SchemaFormPage(entry.form).has_files):
            raise Invalid("The form has no field for a file.")
        for file in files:
            stored = await self._services.answer_files.put(
                link.item, file.name, file.media_type, file.content, by=link.person
            )
            found[uploaded_field(file.field)] = encode(stored).decode()
        return found

    async def _send(self, link: AnswerLink, entry: InboxEntry, fields: Mapping[str, str]) -> None:
        if entry.waiting_for.kind != "person":
            text = fields.get("text", "")
            if not text.strip():
                raise Invalid("The answer is empty.")
            await self._services.human_task_answers.check_reply(link.run_id, link.step, by=link.person)
            await self._services.runs.reply(link.run_id, link.step, ReplyMessage(text=text), link.item)
            return
        data: JsonObject | UnsetType = UNSET
        if entry.form is not None:
            form = SchemaFormPage(entry.form)
            data = form.value(fields)
            if form.wrong:
                raise Invalid("; ".join(f"{wrong.label}: {wrong.message}" for wrong in form.wrong))
        await self._services.human_task_answers.answer(
            link.run_id,
            link.step,
            GivenAnswer(answer=fields.get("answer"), data=data, comment=fields.get("comment") or None),
            by=link.person,
            item=link.item,
        )

    async def _conflict(self, link: AnswerLink, error: Conflict | NotFound) -> Response:
        """Another person works on it, or it is closed."""
        try:
            task = (await self._services.inbox.get(link.item)).waiting_for.human_task
        except NotFound:
            task = None
        claimed = task is not None and task.claimed_by not in (None, link.person)
        return message_page("Another person works on it" if claimed else "Already closed", error.message, 409)

    async def _closed(self, token: str, error: NotFound, status: int = 200) -> Response:
        """Of a question that is closed: who answered it."""
        try:
            link = self._links.find(token)
            _, state = await self._services.run_queries.find_step(link.run_id, link.step)
        except TooManyRequests as exc:
            return message_page("Too many requests", exc.message, 429)
        except NotFound:
            return message_page("Link not valid", f"{error.message} {error.fix}", 404)
        answered = given_answer(state)
        if answered is None or state.attempts != link.attempts:
            return message_page(
                "Already closed", "The question was answered or is no longer waiting.", status
            )
        if answered.get("by") == link.person:
            return message_page("Thank you", "Your answer was recorded. You can close this page.")
        what = f": {answered['answer']}" if isinstance(answered.get("answer"), str) else ""
        text = f"{answered.get('by') or 'Another person'} has answered at {answered.get('at')}{what}"
        return message_page("Already answered", text, status)


def _has_answered(entry: InboxEntry, link: AnswerLink) -> bool:
    task = entry.waiting_for.human_task
    return task is not None and link.person in task.answered_by


def _thanks(entry: InboxEntry) -> Response:
    task = entry.waiting_for.human_task
    missing = 0 if task is None else task.required - len(task.answers)
    return message_page("Thank you", f"Your answer was recorded. The task needs {missing} more.")


def _fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except (UnicodeDecodeError, ValueError) as exc:
        raise Invalid("The form cannot be read.", fix="Send it from the page of the link.") from exc
    return dict(pairs)


def answer_operations(services: Services) -> list[Operation]:
    routes = AnswerRoutes(services)
    one = f"{ANSWER_PATH}/{{token}}"
    page = ResponseSpec("The page.", content={HTML: {"type": "string"}})
    return [
        operation(
            f"GET {one}", routes.show, AnswerParameters, name="show_answer_page", tag="inbox",
            responses={200: page, 404: page, 429: page},
        ),
        operation(
            f"POST {one}", routes.answer, AnswerParameters, name="answer_by_link", tag="inbox",
            body=Body({"type": "object"}, media_types=(FORM, FILES)),
            responses={
                200: page, 303: ResponseSpec("The answer was recorded."), 403: page, 404: page, 409: page, 422: page,
                429: page,
            },
            problems=(413,),
        ),
    ]  # fmt: skip
