"""
Simple A2A, as an agent speaks it.

    request  {"task_id": "…", "input": …}
    answer   {"task_id": "…", "status": "success", "output": {…}, "error": null}
             {"task_id": "…", "status": "error", "output": null, "error": "…"}

An answer that is a text is `{"text": …}`, one that is an object is that object, several artifacts are listed. A
question cannot be carried: the task that asks one fails, and its caller is told why.
"""

from __future__ import annotations

import base64

from trunkline.agent.messages import Message
from trunkline.agent.parts import Data, File, Part, Text
from trunkline.agent.refusals import Refusal, invalid_params
from trunkline.agent.values import Json, JsonObject, kind_of
from trunkline.agent.work import Result, Work


def is_simple(body: JsonObject) -> bool:
    return "task_id" in body and "jsonrpc" not in body


def read_request(body: JsonObject) -> Message:
    task_id = body["task_id"]
    if not isinstance(task_id, str) or not task_id:
        raise invalid_params(f"task_id is {kind_of(task_id)}, and must be a string that is not empty")
    if "input" not in body:
        raise invalid_params("input is missing")
    given = body["input"]
    part = Text(text=given) if isinstance(given, str) else Data(data=given)
    # Not to be mistaken for a message of A2A with this id.
    return Message(id=f"simple-a2a/{task_id}", role="user", parts=(part,))


def answer(task_id: Json, work: Work) -> JsonObject:
    """What to say of a task that rests."""
    if work.state == "completed":
        return {"task_id": task_id, "status": "success", "output": _output(work.artifacts()), "error": None}
    return error(task_id, work.words or f"The task is {work.state}.")


def give_up_asking(work: Work) -> None:
    work.end("failed", f"The agent asks a question, and Simple A2A has no reply to one: {work.words}")
    # It has ended already; what is left is its handler, which waits.
    work.cancel()


def refusal(task_id: Json, refused: Refusal) -> JsonObject:
    return error(task_id, refused.message)


def error(task_id: Json, message: str) -> JsonObject:
    return {"task_id": task_id, "status": "error", "output": None, "error": message}


def _output(results: list[Result]) -> JsonObject:
    if len(results) == 1 and len(results[0].parts) == 1:
        part = results[0].parts[0]
        if isinstance(part, Text):
            return {"text": part.text}
        if isinstance(part, Data) and isinstance(part.data, dict):
            return part.data
    if not results:
        return {}
    texts = [part.text for result in results for part in result.parts if isinstance(part, Text)]
    artifacts: list[Json] = [
        {"name": result.name, **_content(part)} for result in results for part in result.parts
    ]
    return {"text": "\n".join(texts), "artifacts": artifacts} if texts else {"artifacts": artifacts}


def _content(part: Part) -> JsonObject:
    match part:
        case Text(text=text):
            return {"text": text}
        case Data(data=data):
            return {"data": data}
        case File():
            content: JsonObject = (
                {"url": part.url}
                if part.content is None
                else {"bytes": base64.b64encode(part.content).decode()}
            )
            beside: JsonObject = {"media_type": part.media_type, "filename": part.name}
            return content | {name: value for name, value in beside.items() if value is not None}
