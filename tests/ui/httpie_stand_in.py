#!/usr/bin/env python3
"""
Reads a command line as HTTPie does, and sends that request with nothing added.

    http [--pretty=…] [--ignore-stdin] [--raw=BODY] [--auth USER:PASSWORD] METHOD URL [Name:value | Name;] …

An item is a header where its first sign that no backslash precedes is a colon alone, or a semicolon at its end.
"""

from __future__ import annotations

import base64
import http.client
import sys
from urllib.parse import urlsplit

_SIGNS = (":=@", ":=", ":@", "==", "=@", ":", "=", "@")
_SPECIAL = ":=@;"


def header_of(item: str) -> tuple[str, str]:
    name, rest = "", item
    while rest:
        if rest[0] == "\\" and rest[1:2] and rest[1] in _SPECIAL:
            name, rest = name + rest[1], rest[2:]
            continue
        sign = next((sign for sign in _SIGNS if rest.startswith(sign)), None)
        if sign == ":":
            return name, unescaped(rest[1:])
        if sign is not None:
            sys.exit(f"This would be no header: {item}")
        if rest == ";":
            return name, ""
        name, rest = name + rest[0], rest[1:]
    sys.exit(f"This is no item: {item}")


def unescaped(text: str) -> str:
    made = ""
    while text:
        if text[0] == "\\" and text[1:2] and text[1] in _SPECIAL:
            text = text[1:]
        made, text = made + text[0], text[1:]
    return made


def main(words: list[str]) -> None:
    headers: dict[str, str] = {}
    body: bytes | None = None
    reads_stdin = True
    while words[0].startswith("--"):
        option, _, value = words.pop(0).partition("=")
        if option == "--raw":
            body = value.encode()
        elif option == "--auth":
            headers["Authorization"] = f"Basic {base64.b64encode(words.pop(0).encode()).decode()}"
        elif option == "--ignore-stdin":
            reads_stdin = False
        elif option != "--pretty":
            sys.exit(f"This is no option: {option}")
    method, url, *items = words
    headers |= dict(map(header_of, items))
    if reads_stdin and body is None:
        body = sys.stdin.buffer.read()
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.putrequest(method, f"{parts.path}?{parts.query}", skip_accept_encoding=True, skip_host=True)
    connection.putheader("Host", parts.netloc)
    for name, value in headers.items():
        connection.putheader(name, value.encode())
    connection.putheader("Content-Length", str(len(body or b"")))
    connection.endheaders(body)
    connection.getresponse().read()


if __name__ == "__main__":
    main(sys.argv[1:])
