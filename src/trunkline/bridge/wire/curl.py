"""
A recorded request as a command that can be run as it is, in any POSIX shell.

Secrets appear as environment variables, between double quotes; everything else is quoted so that the shell
changes nothing in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import msgspec

from trunkline.agents.http_urls import UrlError
from trunkline.agents.transport_urls import parse_runtime

_VARIABLE = re.compile(r"\$TRUNKLINE_SECRET[A-Z0-9_]*")
_SPECIAL_IN_DOUBLE_QUOTES = re.compile(r'([\\"$`])')
# A shell's argument cannot hold NUL, and a terminal should not be given the others.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# curl would read them as patterns.
_GLOB = re.compile(r"[\[\]{}]")
# By our header: how the AWS command line calls it.
_AWS_OPTIONS = {
    "content-type": "--content-type",
    "accept": "--accept",
    "x-zone-session": "--runtime-session-id",
    "traceparent": "--trace-parent",
    "tracestate": "--trace-state",
    "baggage": "--baggage",
}


class BodyFile(msgspec.Struct, frozen=True):
    """A file that the user of the command creates first; its name needs no quotes."""

    name: str

    @property
    def is_there(self) -> str:
        # Otherwise curl would send an empty body.
        return f"test -s {self.name} && "


def curl_command(method: str, url: str, headers: Mapping[str, str], body: str | BodyFile) -> str:
    words = ["curl", "-sS", "-X", shlex.quote(method)]
    if _GLOB.search(url):
        words.append("--globoff")
    words.append(_quoted(url))
    for name, value in headers.items():
        words += _header(name, value)
    if method == "GET":
        return " ".join(words)
    before, data = _body(body)
    return before + " ".join((*words, *data))


def aws_command(url: str, headers: Mapping[str, str], body: str | BodyFile) -> str:
    """The same call of InvokeAgentRuntime; it is signed with the keys of the user who runs it."""
    try:
        runtime = parse_runtime(url)
    except UrlError as exc:
        return f"# No command for this URL: {exc}"
    words = ["aws", "bedrock-agentcore", "invoke-agent-runtime", "--region", runtime.region]
    words += ["--agent-runtime-arn", shlex.quote(runtime.arn)]
    if runtime.qualifier is not None:
        words += ["--qualifier", shlex.quote(runtime.qualifier)]
    for name, value in headers.items():
        if option := _AWS_OPTIONS.get(name.lower()):
            words += [option, shlex.quote(value)]
    if isinstance(body, BodyFile):
        return body.is_there + " ".join((*words, "--payload", f"fileb://{body.name}", "/dev/stdout"))
    words += ["--payload", "fileb:///dev/stdin", "/dev/stdout"]
    return f"{_printed(body)} | {' '.join(words)}"


def stdio_line(body: str | BodyFile) -> str:
    """What the program reads; its command line is in the operator's settings alone."""
    line = f"cat {body.name}" if isinstance(body, BodyFile) else _printed(f"{body}\n")
    return f"# No curl command: the agent is a local program that reads this line.\n{line}"


def _header(name: str, value: str) -> list[str]:
    scheme, _, credentials = value.partition(" ")
    # The variable holds what a person knows, user:password; curl encodes it.
    if scheme == "Basic" and _VARIABLE.fullmatch(credentials):
        return ["-u", _quoted(credentials)]
    return ["-H", _quoted(f"{name}: {value}") if value else shlex.quote(f"{name};")]


def _body(body: str | BodyFile) -> tuple[str, list[str]]:
    if isinstance(body, BodyFile):
        return body.is_there, ["--data-binary", f"@{body.name}"]
    if not _CONTROL.search(body):
        return "", ["--data-raw", shlex.quote(body)]
    return f"{_printed(body)} | ", ["--data-binary", "@-"]


def _printed(text: str) -> str:
    if not _CONTROL.search(text):
        return f"printf %s {shlex.quote(text)}"
    escaped = _CONTROL.sub(lambda match: f"\\0{ord(match[0]):03o}", text.replace("\\", "\\\\"))
    return f"printf %b {shlex.quote(escaped)}"


def _quoted(text: str) -> str:
    """For the shell, so that only our variables are replaced."""
    if not _VARIABLE.search(text):
        return shlex.quote(text)
    pieces: list[str] = []
    end = 0
    for variable in _VARIABLE.finditer(text):
        pieces += [_SPECIAL_IN_DOUBLE_QUOTES.sub(r"\\\1", text[end : variable.start()]), variable[0]]
        end = variable.end()
    pieces.append(_SPECIAL_IN_DOUBLE_QUOTES.sub(r"\\\1", text[end:]))
    return f'"{"".join(pieces)}"'
