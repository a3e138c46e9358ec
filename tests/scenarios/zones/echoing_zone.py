"""A zone whose handlers break, and repeat what they were given while they do."""

from __future__ import annotations

import base64
import json

from trunkline.jsontypes import JsonObject
from trunkline.zones import Zone, ZoneFault

zone = Zone("execution", policy={"secret_fields": ["pin"]})


@zone.method("repeat")
def repeat(params: JsonObject) -> str:
    raise RuntimeError(f"cannot post with {params['bot_token']}: {params!r} {json.dumps(params)}")


@zone.method("repeat_later")
async def repeat_later(params: JsonObject) -> str:
    known: dict[object, str] = {}
    try:
        return known[params["bot_token"]]
    except KeyError as exc:
        raise ValueError({"nested": [params]}) from exc


@zone.method("encode")
def encode(params: JsonObject) -> str:
    text = base64.b64encode(f"user:{params['bot_token']}".encode()).decode()
    raise RuntimeError(f"Authorization: Basic {text}")


@zone.method("return_it")
def return_it(params: JsonObject) -> JsonObject:
    return {"response_text": f"posted with {params['bot_token']}", "used": [params]}


@zone.method("raise_it")
def raise_it(params: JsonObject) -> JsonObject:
    raise ZoneFault(-32050, f"Slack refuses {params['bot_token']}", {"used": [params]})
