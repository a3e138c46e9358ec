"""
Reads what a browser sends for a form with files (`multipart/form-data`, RFC 7578).

    --BOUNDARY CRLF headers CRLF CRLF content CRLF --BOUNDARY … --BOUNDARY--
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trunkline.errors import Invalid

MAX_PARTS = 1_000
_MAX_HEADERS = 8_192
_BOUNDARY = re.compile(
    r'^multipart/form-data\s*;.*?boundary=(?:"([^"]{1,70})"|([^";,\s]{1,70}))', re.IGNORECASE
)
_NAME = re.compile(r'[;\s]name="([^"\r\n]*)"', re.IGNORECASE)
_FILE_NAME = re.compile(r'[;\s]filename="([^"\r\n]*)"', re.IGNORECASE)
_TYPE = re.compile(r"^content-type:\s*([^;\r\n]+)", re.IGNORECASE | re.MULTILINE)
_LINE = b"\r\n"


class SentFile(NamedTuple):
    field: str
    name: str
    media_type: str
    content: bytes


class SentForm(NamedTuple):
    fields: dict[str, str]
    files: list[SentFile]


def boundary_of(content_type: str) -> bytes | None:
    """None: it is something else."""
    found = _BOUNDARY.match(content_type)
    return None if found is None else (found[1] or found[2]).encode()


def read_multipart(body: bytes, boundary: bytes) -> SentForm:
    """Raises `Invalid`. A file input that was left empty is no file."""
    form = SentForm({}, [])
    parts = (_LINE + body).split(_LINE + b"--" + boundary, MAX_PARTS + 2)
    if len(parts) < 2 or len(parts) > MAX_PARTS + 1 or not parts[-1].startswith(b"--"):
        raise _unreadable()
    for part in parts[1:-1]:
        head, separator, content = part.partition(_LINE + _LINE)
        if not separator or len(head) > _MAX_HEADERS:
            raise _unreadable()
        _add(form, head.decode("utf-8", errors="replace"), content)
    return form


def _add(form: SentForm, head: str, content: bytes) -> None:
    field = _NAME.search(head)
    if field is None:
        raise _unreadable()
    file_name = _FILE_NAME.search(head)
    if file_name is None:
        try:
            form.fields[field[1]] = content.decode()
        except UnicodeDecodeError as exc:
            raise _unreadable() from exc
    elif content or file_name[1]:
        media_type = _TYPE.search(head)
        name = re.split(r"[\\/]", file_name[1])[-1]
        type_ = "application/octet-stream" if media_type is None else media_type[1].strip()
        form.files.append(SentFile(field[1], name, type_, content))


def _unreadable() -> Invalid:
    return Invalid("The form cannot be read.", fix="Send it from the page of the link.")
