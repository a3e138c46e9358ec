"""
A rekey that kills itself at its n-th transaction, before or after the commit.

    python -m tests.crash.rekey_process STORE before|after N NEW_KEY OLD_KEY
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from tests.crash.crash_points import KILLED

from trunkline.services.security.rekey import Rekeying
from trunkline.services.security.vault import Vault
from trunkline.settings import load_settings
from trunkline.stores.base import Store, Transaction
from trunkline.wiring import open_store


class KillingStore:
    """Hands on to a store, until the process ends in its n-th transaction."""

    def __init__(self, store: Store, moment: str, number: int) -> None:
        self._store = store
        self._moment = moment
        self._left = number
        self.secrets = store.secrets
        self.agents = store.agents
        self.push_configs = store.push_configs

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        self._left -= 1
        async with self._store.transaction() as tx:
            yield tx
            if self._left == 0 and self._moment == "before":
                os._exit(KILLED)
        if self._left == 0:
            os._exit(KILLED)


async def rekey(store_url: str, moment: str, number: int, *keys: str) -> None:
    async with open_store(load_settings({"store": store_url}), allow_in_use=True) as store:
        killing = cast("Store", KillingStore(store, moment, number))
        vault = Vault(*(bytes.fromhex(key) for key in keys))
        await Rekeying(killing, vault, progress=lambda _: None, batch=2).run()


if __name__ == "__main__":
    url, moment, number, *keys = sys.argv[1:]
    asyncio.run(rekey(url, moment, int(number), *keys))
