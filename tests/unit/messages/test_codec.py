"""Messages as records: what is written is read again, and what cannot be read says why and what to do."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.clock import Instant
from trunkline.jsontypes import Json, encode
from trunkline.messages import AgentResult, AgentTask, BrokerRecord, CancelTask, OutgoingMessage, StepError
from trunkline.messages.codec import (
    MAX_VALUE_BYTES,
    REFERENCE_HEADER,
    TYPE_HEADER,
    VERSION_HEADER,
    ResultReference,
    TaskReference,
    UnreadableMessage,
    decode_result,
    decode_task,
    encode_result,
    encode_task,
    read_result,
    read_task,
)

RUN = "018f0000-0000-7000-8000-000000000001"
TASK = AgentTask(task_id=f"{RUN}/a/0", run_id=RUN, step="a", agent="A", input_data={"n": 1})
CANCEL = CancelTask(task_id=f"{RUN}/a/0", attempt=1, run_id=RUN, agent="A")
RESULT = AgentResult(
    task_id=f"{RUN}/a/0",
    run_id=RUN,
    step="a",
    attempt=1,
    status="success",
    at=Instant(1),
    output=msgspec.Raw(b'"x"'),
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
names = texts.filter(bool)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
tasks = st.builds(
    AgentTask,
    task_id=names,
    run_id=names,
    step=names,
    agent=names,
    attempt=st.integers(1, 1_000),
    input_data=json_values,
    correlation_id=texts,
    timeout_ms=st.none() | st.integers(1, 10**9),
    at_most_once=st.booleans(),
    context_id=st.none() | texts,
    secrets=st.dictionaries(texts, names, max_size=3),
    told_secrets=st.lists(names, max_size=3),
    remote_task_id=st.none() | texts,
    pool=st.none() | names,
)
results = st.builds(
    AgentResult,
    task_id=names,
    run_id=names,
    step=names,
    attempt=st.integers(1, 1_000),
    status=st.sampled_from(["success", "error", "working", "interrupted", "cancelled", "unknown"]),
    at=st.integers(0, 2**60).map(Instant),
    output=json_values.map(lambda value: msgspec.Raw(encode(value))),
    correlation_id=texts,
    error=st.none() | st.builds(StepError, code=names, message=texts, detail=json_values),
    warnings=st.lists(texts, max_size=2),
)


def test_a_result_without_a_correlation_id_is_one_of_an_earlier_version() -> None:
    sent = json.loads(encode_result(msgspec.structs.replace(RESULT, correlation_id="order-7"), "t").value)
    earlier = {name: value for name, value in sent.items() if name != "correlation_id"}
    assert sent["correlation_id"] == "order-7"
    assert decode_result(json.dumps(earlier).encode()).correlation_id == ""


def arrived(message: OutgoingMessage) -> BrokerRecord:
    return BrokerRecord(
        topic=message.topic,
        partition=0,
        offset=7,
        key=message.record_key,
        value=message.value,
        headers=message.headers,
    )


def changed(message: OutgoingMessage, value: bytes | None = None, **headers: str | None) -> BrokerRecord:
    """The record of a message with another value, and some headers replaced, or gone where they are None."""
    names = {"type": TYPE_HEADER, "version": VERSION_HEADER, "reference": REFERENCE_HEADER}
    kept = dict(message.headers)
    for name, text in headers.items():
        kept.pop(names[name], None)
        if text is not None:
            kept[names[name]] = text.encode()
    return BrokerRecord(
        topic="t",
        partition=0,
        offset=7,
        key=b"k",
        value=message.value if value is None else value,
        headers=tuple(kept.items()),
    )


@given(tasks)
def test_a_task_is_read_as_it_was_written(task: AgentTask) -> None:
    assert read_task(arrived(encode_task(task, "t"))) == task


@given(results)
def test_a_result_is_read_as_it_was_written(result: AgentResult) -> None:
    assert read_result(arrived(encode_result(result, "t"))) == result


def test_a_stop_is_read_as_it_was_written() -> None:
    assert read_task(arrived(encode_task(CANCEL, "t"))) == CANCEL


def test_a_message_goes_to_its_topic_under_the_id_of_its_run() -> None:
    for message in (encode_task(TASK, "t"), encode_task(CANCEL, "t"), encode_result(RESULT, "t")):
        assert (message.topic, message.record_key) == ("t", RUN.encode())


def test_the_headers_say_what_it_is_and_of_which_version() -> None:
    messages = (encode_task(TASK, "t"), encode_task(CANCEL, "t"), encode_result(RESULT, "t"))
    assert [dict(message.headers) for message in messages] == [
        {"trunkline-type": kind, "trunkline-version": b"1"}
        for kind in (b"agent-task", b"cancel-task", b"agent-result")
    ]


def test_what_is_encoded_already_is_not_encoded_again() -> None:
    payload = encode(TASK)
    assert encode_task(TASK, "t", payload).value is payload
    assert decode_task(payload) == TASK
    assert decode_result(encode(RESULT)) == RESULT


def test_a_message_of_512_kb_travels_whole_and_a_longer_one_by_its_name() -> None:
    room = MAX_VALUE_BYTES - len(encode(msgspec.structs.replace(TASK, input_data="")))
    whole = msgspec.structs.replace(TASK, input_data="x" * room)
    assert read_task(arrived(encode_task(whole, "t"))) == whole
    longer = msgspec.structs.replace(TASK, input_data="x" * (room + 1))
    message = encode_task(longer, "t")
    assert json.loads(message.value) == {"task_id": TASK.task_id, "attempt": 1, "run_id": RUN}
    assert dict(message.headers)["trunkline-reference"] == b"1"
    assert read_task(arrived(message)) == TaskReference(task_id=TASK.task_id, attempt=1, run_id=RUN)


def test_a_long_result_travels_by_its_name() -> None:
    longer = msgspec.structs.replace(RESULT, output=msgspec.Raw(encode("x" * MAX_VALUE_BYTES)))
    read = read_result(arrived(encode_result(longer, "t")))
    assert read == ResultReference(task_id=RESULT.task_id, attempt=1, run_id=RUN)


UNREADABLE_TASKS = {
    "no value": (
        BrokerRecord(
            topic="t", partition=0, offset=1, key=None, value=None, headers=encode_task(TASK, "t").headers
        ),
        "empty",
        "no value",
    ),
    "no headers at all": (
        BrokerRecord(topic="t", partition=0, offset=1, key=None, value=b"{}"),
        "type",
        "trunkline-type",
    ),
    "no type": (changed(encode_task(TASK, "t"), type=None), "type", "did not send it"),
    "an unknown type": (changed(encode_task(TASK, "t"), type="agent-poem"), "type", "agent-poem"),
    "a result": (arrived(encode_result(RESULT, "t")), "type", "agent-result"),
    "the next version": (changed(encode_task(TASK, "t"), version="2"), "version", "version 2"),
    "no version": (changed(encode_task(TASK, "t"), version=None), "version", "version none"),
    "not UTF-8": (changed(encode_task(TASK, "t"), b'{"task_id":"\xff"}'), "malformed", "UTF-8"),
    "no JSON": (changed(encode_task(TASK, "t"), b"hello"), "malformed", "not a valid message"),
    "nothing": (changed(encode_task(TASK, "t"), b""), "malformed", "not a valid message"),
    "half of it": (changed(encode_task(TASK, "t"), encode(TASK)[:-5]), "malformed", "not a valid message"),
    "a list": (changed(encode_task(TASK, "t"), b"[]"), "malformed", "not a valid message"),
    "too deep": (
        changed(encode_task(TASK, "t"), b'{"task_id":' + b"[" * 100_000),
        "malformed",
        "not a valid message",
    ),
    "no task_id": (changed(encode_task(TASK, "t"), b"{}"), "malformed", "task_id"),
    "an empty task_id": (
        changed(encode_task(TASK, "t"), b'{"task_id":"","run_id":"r"}'),
        "malformed",
        "task_id",
    ),
    "no run_id": (
        changed(encode_task(TASK, "t"), b'{"task_id":"t","step":"s","agent":"a"}'),
        "malformed",
        "run_id",
    ),
    "no step": (
        changed(encode_task(TASK, "t"), b'{"task_id":"t","run_id":"r","agent":"a"}'),
        "malformed",
        "step",
    ),
    "no agent": (
        changed(encode_task(TASK, "t"), b'{"task_id":"t","run_id":"r","step":"a"}'),
        "malformed",
        "agent",
    ),
    "attempt 0": (
        changed(encode_task(TASK, "t"), b'{"task_id":"t","run_id":"r","step":"a","agent":"a","attempt":0}'),
        "malformed",
        "attempt",
    ),
    "a stop without attempt": (
        changed(encode_task(CANCEL, "t"), b'{"task_id":"t","run_id":"r"}'),
        "malformed",
        "attempt",
    ),
    "a reference to nothing": (changed(encode_task(TASK, "t"), b"{}", reference="1"), "malformed", "task_id"),
}


@pytest.mark.parametrize(
    ("record", "category", "words"), UNREADABLE_TASKS.values(), ids=UNREADABLE_TASKS.keys()
)
def test_an_unreadable_task_says_why(record: BrokerRecord, category: str, words: str) -> None:
    with pytest.raises(UnreadableMessage) as caught:
        read_task(record)
    assert caught.value.category == category
    assert words in caught.value.reason


UNREADABLE_RESULTS = {
    "a task": (arrived(encode_task(TASK, "t")), "type", "agent-task"),
    "the next version": (changed(encode_result(RESULT, "t"), version="2"), "version", "same version"),
    "bad UTF-8 in the output": (
        changed(encode_result(RESULT, "t"), encode(RESULT).replace(b'"x"', b'"\xff"')),
        "malformed",
        "UTF-8",
    ),
    "an unknown status": (
        changed(encode_result(RESULT, "t"), encode(RESULT).replace(b"success", b"splendid")),
        "malformed",
        "status",
    ),
    "no step": (
        changed(encode_result(RESULT, "t"), encode(RESULT).replace(b'"step":"a"', b'"step":""')),
        "malformed",
        "step",
    ),
}


@pytest.mark.parametrize(
    ("record", "category", "words"), UNREADABLE_RESULTS.values(), ids=UNREADABLE_RESULTS.keys()
)
def test_an_unreadable_result_says_why(record: BrokerRecord, category: str, words: str) -> None:
    with pytest.raises(UnreadableMessage) as caught:
        read_result(record)
    assert caught.value.category == category
    assert words in caught.value.reason


@given(
    st.binary(),
    st.lists(
        st.tuples(
            st.sampled_from([TYPE_HEADER, VERSION_HEADER, REFERENCE_HEADER, "x"]),
            st.sampled_from([b"1", b"2", b"agent-task", b"agent-result", b"cancel-task", b"\xff"]),
        )
    ),
)
def test_whatever_comes_is_read_or_refused(value: bytes, headers: list[tuple[str, bytes]]) -> None:
    record = BrokerRecord(topic="t", partition=0, offset=0, key=None, value=value, headers=tuple(headers))
    for read in (read_task, read_result):
        with suppress(UnreadableMessage):
            read(record)
