"""Whatever is sent, the agent answers in the form of the request, and never with a mistake of its own."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agentkit.asgi import post
from tests.unit.agentkit.versions import VERSIONS

from trunkline.agentkit import Agent, Task
from trunkline.jsontypes import Json, JsonObject, decode

_LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5)
ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from([name for version in VERSIONS for name in version[1:]] + ["ListTasks"])
# Names that mean something, with what they are not meant to have.
FIELDS = st.dictionaries(
    st.sampled_from(
        ["id", "message", "configuration", "historyLength", "contextId", "pageSize", "pageToken"]
    ),
    ANYTHING
    | st.dictionaries(
        st.sampled_from(["messageId", "role", "parts", "taskId", "contextId", "metadata", "historyLength"]),
        ANYTHING
        | st.lists(st.dictionaries(st.sampled_from(["kind", "text", "data", "file", "raw"]), ANYTHING)),
    ),
)


async def answered(body: Json | bytes) -> Json:
    agent = Agent("Any")

    @agent
    async def answer(task: Task) -> Json:
        return {"text": task.text, "data": task.data}

    told = await post(agent, body)
    assert told.status in (200, 400)
    return decode(told.body)


def code_of(answer: Json) -> Json:
    assert isinstance(answer, dict)
    error = answer.get("error")
    return error["code"] if isinstance(error, dict) else None


@given(method=METHODS, params=FIELDS | ANYTHING)
def test_any_params_are_answered_and_never_by_an_internal_error(method: str, params: Json) -> None:
    body: JsonObject = {"jsonrpc": "2.0", "id": "c", "method": method, "params": params}
    answer = asyncio.run(answered(body))
    assert isinstance(answer, dict)
    assert answer["id"] == "c"
    assert code_of(answer) != -32603


@given(body=st.binary(max_size=50))
def test_any_bytes_are_answered(body: bytes) -> None:
    answer = asyncio.run(answered(body))
    # A batch, by chance.
    answers = answer if isinstance(answer, list) else [answer]
    assert all(code_of(each) in (-32700, -32600) for each in answers)


@given(given_input=ANYTHING)
def test_any_input_of_simple_a2a_is_done(given_input: Json) -> None:
    answer = asyncio.run(answered({"task_id": "t", "input": given_input}))
    assert isinstance(answer, dict)
    assert (answer["task_id"], answer["status"], answer["error"]) == ("t", "success", None)
