"""
The operations on push notification configs, in both versions.

    1.0   CreateTaskPushNotificationConfig, Get…, List…s, Delete…: {"taskId", "id", …}
    0.3   tasks/pushNotificationConfig/set: {"taskId", "pushNotificationConfig"}; get, list, delete: {"id": task id,
          "pushNotificationConfigId"}
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.bindings.caller_request import CallerRequest
from trunkline.publishing.errors import A2AError, ErrorKind, invalid_params
from trunkline.publishing.messages import field_of, object_field, text_field, whole_number
from trunkline.publishing.operations import PublishedOperations
from trunkline.publishing.push.configs import (
    GivenConfig,
    config_id,
    config_v03,
    config_v1,
    read_config,
)
from trunkline.publishing.tasks import CallerTask
from trunkline.services.callbacks.push_configs import MAX_CONFIGS_OF_A_TASK, PushConfigs, PushReceiver
from trunkline.stores.port.push_configs import PushConfig


def inline_config(configuration: JsonObject, version: str) -> GivenConfig | None:
    """The config in the configuration of a message."""
    for name in ("taskPushNotificationConfig", "pushNotificationConfig"):
        fields = object_field(configuration, name)
        if fields is not None:
            return read_config(fields, version)
    return None


class PushConfigRequests:
    def __init__(self, operations: PublishedOperations, configs: PushConfigs) -> None:
        self._operations = operations
        self._configs = configs

    async def create(self, asked: CallerRequest) -> Json:
        task = await self._task(asked, "taskId")
        fields = asked.params
        if asked.is_old:
            inner = object_field(fields, "pushNotificationConfig")
            if inner is None:
                raise invalid_params("pushNotificationConfig is required")
            fields = inner
        given = read_config(fields, asked.version)
        self._configs.check_address(given.receiver.url)
        # Clients of 0.3 that give no id mean the one config of the task.
        identity = given.id or (task.record.id if asked.is_old else new_id())
        config = self._configs.new(task.record.id, identity, given.receiver)
        await self._configs.put(config)
        return self._write(asked, config, given.receiver)

    async def get(self, asked: CallerRequest) -> Json:
        task = await self._task(asked)
        identity = self._config_id(asked)
        if identity is None:
            found = await self._configs.get(task.record.id, task.record.id)
            found = found or next(iter(await self._configs.of_task(task.record.id)), None)
        else:
            found = await self._configs.get(task.record.id, identity)
        if found is None:
            raise A2AError(ErrorKind.TASK_NOT_FOUND, "The task does not have this push notification config.")
        return self._shown(asked, found)

    async def list(self, asked: CallerRequest) -> Json:
        task = await self._task(asked)
        configs = await self._configs.of_task(task.record.id)
        if asked.is_old:
            return [self._shown(asked, config) for config in configs]
        start, size = _page(asked.params)
        page = configs[start : start + size]
        following = start + len(page)
        return {
            "configs": [self._shown(asked, config) for config in page],
            "nextPageToken": str(following) if following < len(configs) else "",
        }

    async def delete(self, asked: CallerRequest) -> Json:
        task = await self._task(asked)
        identity = self._config_id(asked)
        if identity is None:
            raise invalid_params("pushNotificationConfigId is required" if asked.is_old else "id is required")
        await self._configs.delete(task.record.id, identity)
        return None

    async def _task(self, asked: CallerRequest, old_name: str = "id") -> CallerTask:
        name = old_name if asked.is_old else "taskId"
        task_id = text_field(asked.params, name)
        if task_id is None:
            raise invalid_params(f"{name} is required")
        return await self._operations.get(asked.publication, task_id, asked.caller)

    def _config_id(self, asked: CallerRequest) -> str | None:
        if asked.is_old:
            return config_id(asked.params, "pushNotificationConfigId")
        identity = config_id(asked.params, "id")
        if identity is None:
            raise invalid_params("id is required")
        return identity

    def _shown(self, asked: CallerRequest, config: PushConfig) -> JsonObject:
        receiver = self._configs.receiver(config)
        if asked.caller.is_anonymous:
            # Another one may have set it, and its path and query can contain secrets.
            parts = urlsplit(receiver.url)
            receiver = msgspec.structs.replace(receiver, url=f"{parts.scheme}://{parts.netloc}/")
        return self._write(asked, config, receiver)

    def _write(self, asked: CallerRequest, config: PushConfig, receiver: PushReceiver) -> JsonObject:
        write = config_v03 if asked.is_old else config_v1
        return write(config.key.run_id, config.key.id, receiver)


def _page(params: JsonObject) -> tuple[int, int]:
    """Where the page begins, and how many it has at most."""
    size = MAX_CONFIGS_OF_A_TASK
    given = field_of(params, "pageSize")
    if given is not None:
        number = whole_number(given)
        if number is None or number < 0:
            raise invalid_params("pageSize must be a whole number that is not negative")
        # As ProtoJSON has it, 0 is none.
        size = min(number or size, size)
    token = text_field(params, "pageToken")
    if token is None:
        return 0, size
    if not token.isascii() or not token.isdigit() or len(token) > 4:
        raise invalid_params("pageToken is not one that this list has returned")
    return int(token), size
