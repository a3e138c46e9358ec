"""
Push notification configs: where the updates of a caller's task go, and how the receiver recognises them.

The address and the credentials are encrypted in the store. They leave it for the requests to the receiver, and the
address also for the caller that has set it; operators see its host.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from trunkline.clock import Clock, Instant
from trunkline.errors import Invalid, NotFound
from trunkline.ids import RunId
from trunkline.services.callbacks.task_updates import queue_of
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.security.vault import Vault
from trunkline.stores.base import Store
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey
from trunkline.transports.address_policy import AddressPolicy

# Each gets every update.
MAX_CONFIGS_OF_A_TASK = 20
MAX_ID_CHARACTERS = 255
MAX_TOKEN_CHARACTERS = 4_096
MAX_CREDENTIALS_CHARACTERS = 8_192
MAX_SCHEME_CHARACTERS = 100


class PushReceiver(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where updates go, in which form, and what they are authenticated with."""

    url: str
    # Of the body.
    version: Literal["0.3", "1.0"]
    token: str | None = None
    # Of the header Authorization.
    scheme: str | None = None
    credentials: str | None = None
    # With which requests are signed.
    secret: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return tuple(text for text in (self.token, self.credentials, self.secret) if text is not None)


class PushConfigStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A config as operators see it."""

    id: str
    # Of its URL, which can contain secrets.
    host: str
    version: str
    created_at: Instant
    failures: int
    error: str | None
    disabled_at: Instant | None
    # How many notifications have not been accepted yet.
    waiting: int


def push_config_owner(key: PushConfigKey) -> str:
    """What the encrypted form is bound to."""
    return f"push/{key.run_id}/{key.id}"


class PushConfigs:
    def __init__(self, store: Store, vault: Vault, clock: Clock, policy: AddressPolicy) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self._policy = policy

    def check_address(self, url: str) -> None:
        """
        Raises `Invalid` for an address that is never called. A name is only looked up, and checked, when it is called.
        """
        host = urlsplit(url).hostname or ""
        is_local = host == "localhost" or host.endswith(".localhost")
        try:
            address = ip_address("127.0.0.1" if is_local else host)
        except ValueError:
            return
        refused = self._policy.check(host, address)
        if refused is not None:
            raise Invalid(
                f"The url of the push notification config cannot be called: {refused}.",
                fix="Use a public address, or ask the operator to add it to allowed_networks.",
            )

    def new(self, run_id: RunId, config_id: str, receiver: PushReceiver) -> PushConfig:
        """Encrypted, and not stored yet."""
        key = PushConfigKey(run_id, config_id)
        content = msgspec.to_builtins(receiver)
        return PushConfig(
            key=key,
            sealed=self._vault.seal(content, owner=push_config_owner(key)),
            created_at=self._clock.now(),
        )

    def receiver(self, config: PushConfig) -> PushReceiver:
        """Raises `ConfigurationError` if it cannot be decrypted."""
        opened = self._vault.open(config.sealed, owner=push_config_owner(config.key))
        return msgspec.convert(opened, PushReceiver)

    async def put(self, config: PushConfig) -> None:
        """Replaces the one with the same id. Raises `Invalid` if the task has too many."""
        async with self._store.transaction() as tx:
            if not await tx.push_configs.put(config, most=MAX_CONFIGS_OF_A_TASK):
                raise Invalid(
                    f"The task has {MAX_CONFIGS_OF_A_TASK} push notification configs already.",
                    fix="Delete one of them, or replace it by a config with its id.",
                )
            # What waits there was held back by failures of the config before.
            await tx.callbacks.resume([queue_of(config.key)])

    async def get(self, run_id: RunId, config_id: str) -> PushConfig | None:
        return await self._store.push_configs.get(PushConfigKey(run_id, config_id))

    async def of_task(self, run_id: RunId) -> list[PushConfig]:
        """Oldest first."""
        return await self._store.push_configs.of_task(run_id)

    async def delete(self, run_id: RunId, config_id: str) -> None:
        """With the notifications that wait. Does nothing if there is none."""
        key = PushConfigKey(run_id, config_id)
        async with self._store.transaction() as tx:
            await tx.push_configs.delete(key)
            await tx.callbacks.delete([queue_of(key)])

    async def remove(self, run_id: RunId, config_id: str) -> None:
        """An operator deletes it. Raises `NotFound`."""
        key = PushConfigKey(run_id, config_id)
        if await self._store.push_configs.get(key) is None:
            raise _no_config(key)
        async with self._store.transaction() as tx:
            await tx.push_configs.delete(key)
            await tx.callbacks.delete([queue_of(key)])
            entry = audit_entry("run", "delete_push_config", run_id, config=config_id)
            await tx.audit.put([entry])

    async def statuses(self, run_id: RunId) -> list[PushConfigStatus]:
        return [await self._status(config) for config in await self.of_task(run_id)]

    async def enable(self, run_id: RunId, config_id: str) -> PushConfigStatus:
        """Sends what waits now, as if nothing had failed. Raises `NotFound`."""
        key = PushConfigKey(run_id, config_id)
        async with self._store.transaction() as tx:
            if not await tx.push_configs.enable(key):
                raise _no_config(key)
            await tx.callbacks.resume([queue_of(key)])
            entry = audit_entry("run", "enable_push_config", run_id, config=config_id)
            await tx.audit.put([entry])
        found = await self._store.push_configs.get(key)
        if found is None:
            raise NotFound(f"The push notification config {config_id} has been deleted.")
        return await self._status(found)

    async def _status(self, config: PushConfig) -> PushConfigStatus:
        receiver = self.receiver(config)
        queue = await self._store.callbacks.queue(queue_of(config.key))
        return PushConfigStatus(
            id=config.key.id,
            host=urlsplit(receiver.url).netloc,
            version=receiver.version,
            created_at=config.created_at,
            failures=config.failures,
            error=config.error,
            disabled_at=config.disabled_at,
            waiting=0 if queue is None else queue.waiting,
        )


def _no_config(key: PushConfigKey) -> NotFound:
    return NotFound(
        f"Run {key.run_id} has no push notification config {key.id[:MAX_ID_CHARACTERS]}.",
        fix=f"See its configs: trunkline runs push-configs {key.run_id}.",
    )
