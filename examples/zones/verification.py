"""
The verification zone: receives chat messages, authorizes and limits them, and passes them on.

    POST /messages {"event_id", "channel", "user_id", "text"}

    python verification.py https://localhost:9000 --key verification.key --authority ca.pem
    python verification.py arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/execution

The address of the execution zone alone selects the transport. Prints its own URL when it is ready. BOT_TOKEN is the
token with which the execution zone posts its answer to the chat.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import msgspec
from aiohttp import web

from trunkline.agents import AuthType
from trunkline.jsontypes import JsonObject
from trunkline.zones.client import ZoneCallFailed, ZoneClient, open_zone_client

ALLOWED_USERS = frozenset({"U-ada", "U-grace"})
# For each user, until the process ends.
MOST_MESSAGES = 5
SECONDS_FOR_A_TASK = 60.0


class Message(msgspec.Struct):
    event_id: str
    channel: str
    user_id: str
    text: str


class Verification:
    def __init__(self, link: ZoneClient, bot_token: str) -> None:
        self._link = link
        self._bot_token = bot_token
        self._messages: dict[str, int] = {}

    async def take(self, request: web.Request) -> web.Response:
        try:
            message = msgspec.json.decode(await request.read(), type=Message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _refused(
                400, "A message is a JSON object with the strings event_id, channel, user_id and text"
            )
        user = message.user_id
        if user not in ALLOWED_USERS:
            return _refused(403, f"{user} is not allowed to send messages")
        self._messages[user] = self._messages.get(user, 0) + 1
        if self._messages[user] > MOST_MESSAGES:
            return _refused(429, f"{user} has already sent {MOST_MESSAGES} messages")
        return await self._hand_on(message)

    async def _hand_on(self, message: Message) -> web.Response:
        params: JsonObject = {
            "channel": message.channel,
            "text": message.text,
            "bot_token": self._bot_token,
            "correlation_id": message.event_id,
            "user_id": message.user_id,
        }
        # A chat that gets no answer in time delivers the event again. The same event is the same task.
        task = str(uuid5(NAMESPACE_URL, f"chat:{message.event_id}"))
        try:
            result = await self._link.execute_task(params, id=task, deadline=SECONDS_FOR_A_TASK)
        except ZoneCallFailed as failed:
            return web.json_response({"error": failed.error.message, "fix": failed.error.fix}, status=502)
        return web.json_response({"text": result.get("response_text")})


def _refused(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A verification zone in front of an execution zone.")
    parser.add_argument("zone", help="address of the execution zone: https://…, arn:aws:…")
    parser.add_argument("--key", type=Path, help="private key that signs the tokens (PEM)")
    parser.add_argument(
        "--authority", type=Path, help="certificate that verifies the certificate of the zone (PEM)"
    )
    return parser.parse_args()


def _auth(arguments: argparse.Namespace) -> tuple[AuthType, JsonObject | None]:
    """As an agent's `auth_type` and `auth_config`."""
    if arguments.key is None:
        return "none", None
    config: JsonObject = {
        "key": arguments.key.read_text(),
        "issuer": "verification",
        "audience": "execution",
    }
    if arguments.authority is not None:
        config["tls"] = {"authority": arguments.authority.read_text()}
    return "signed", config


async def serve(arguments: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    auth_type, auth_config = _auth(arguments)
    async with open_zone_client(arguments.zone, auth_type=auth_type, auth_config=auth_config) as link:
        app = web.Application()
        app.router.add_post("/messages", Verification(link, os.environ["BOT_TOKEN"]).take)
        runner = web.AppRunner(app)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listener).start()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        await stopping.wait()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(_arguments()))
