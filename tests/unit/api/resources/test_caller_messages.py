"""The message that started a run, without the bytes of its files."""

from __future__ import annotations

from base64 import b64encode

import pytest

from trunkline.api.resources.caller_messages import caller_message_resource
from trunkline.jsontypes import encode
from trunkline.messages import CallerMessage


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000])
def test_the_bytes_of_a_file_are_left_out(size: int) -> None:
    raw = b64encode(b"x" * size).decode()
    message = CallerMessage(
        message_id="m", context_id="c", parts=[{"raw": raw, "filename": "a.txt"}, {"text": "hi"}]
    )
    shown = caller_message_resource(encode(message), "a2a:otto")
    assert shown["key"] == "otto"
    assert shown["parts"] == [{"filename": "a.txt", "raw_bytes": size}, {"text": "hi"}]
