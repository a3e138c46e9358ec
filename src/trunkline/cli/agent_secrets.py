"""
An agent's `auth_config` from an environment variable or a file, never from the command line.

    bearer    the token
    api_key   the key; it travels in the header X-API-Key unless the agent's file says otherwise
    basic     user:password
    headers   one `Name: value` per line
    oauth2    a JSON object: token_url, client_id, client_secret, and what else the agent's file may say
    signed    a JSON object: key (a private key as PEM), issuer, audience, and what else the agent's file may say
    mtls      PEM: our certificate and its key
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Literal, cast

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import Choice, secret_from_env, secret_from_file

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject

AuthType = Annotated[
    Literal["none", "bearer", "api_key", "basic", "headers", "oauth2", "signed", "mtls"], Choice
]
API_KEY_HEADER = "X-API-Key"
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)


def auth_config(auth_type: AuthType, *, env: str | None, file: str | None) -> JsonObject | None:
    """The agent's credentials; nothing for an agent that wants none."""
    if auth_type == "none":
        if env or file:
            raise _usage("--auth-env and --auth-file need --auth-type", "Add --auth-type bearer")
        return None
    if (env is None) == (file is None):
        raise _usage(
            f"--auth-type {auth_type} needs a secret from either --auth-env or --auth-file",
            "Add --auth-env VARIABLE or --auth-file PATH",
        )
    secret = secret_from_env(env) if env is not None else secret_from_file(file or "")
    match auth_type:
        case "bearer":
            return {"token": secret}
        case "api_key":
            return {"name": API_KEY_HEADER, "value": secret, "in": "header"}
        case "basic":
            return _basic(secret)
        case "headers":
            return _headers(secret)
        case "oauth2" | "signed":
            return _object(auth_type, secret)
        case "mtls":
            return _certificate_and_key(secret)


def resolve_references(config: Json) -> Json:
    """`{env: VARIABLE}` and `{file: PATH}` in a file's `auth_config` stand for the secret they name."""
    if not isinstance(config, dict):
        return config
    return {name: _resolve(value) for name, value in config.items()}


def _resolve(value: Json) -> Json:
    match value:
        case {"env": str(variable)} if len(value) == 1:
            return secret_from_env(variable)
        case {"file": str(path)} if len(value) == 1:
            return secret_from_file(path)
        case dict():
            # What is about TLS has secrets inside.
            return resolve_references(value)
        case _:
            return value


def _basic(secret: str) -> JsonObject:
    username, separator, password = secret.partition(":")
    if not separator:
        raise _usage("The secret for basic is not of the form user:password", "Correct the secret")
    return {"username": username, "password": password}


def _headers(secret: str) -> JsonObject:
    headers: dict[str, str] = {}
    for line in secret.splitlines():
        name, separator, value = line.partition(":")
        if not separator:
            raise _usage(
                "The secret for headers is not of the form Name: value, one per line", "Correct the secret"
            )
        headers[name.strip()] = value.strip()
    return cast("JsonObject", headers)


def _object(auth_type: AuthType, secret: str) -> JsonObject:
    try:
        fields = json.loads(secret)
    except ValueError as exc:
        raise _usage(f"The secret for {auth_type} is not a JSON object", "Correct the secret") from exc
    if not isinstance(fields, dict):
        raise _usage(f"The secret for {auth_type} is not a JSON object", "Correct the secret")
    return cast("JsonObject", fields)


def _certificate_and_key(secret: str) -> JsonObject:
    blocks = [match[0] for match in _PEM_BLOCK.finditer(secret)]
    keys = [block for block in blocks if "PRIVATE KEY" in block]
    if len(keys) != 1 or len(blocks) < 2:
        raise _usage(
            "The secret for mtls must contain a certificate (or a chain) and one private key, as PEM",
            "Correct the secret",
        )
    return {"certificate": "\n".join(block for block in blocks if block not in keys), "key": keys[0]}


def _usage(what: str, fix: str) -> CliError:
    return CliError(what, fix=fix, exit_code=Exit.USAGE)
