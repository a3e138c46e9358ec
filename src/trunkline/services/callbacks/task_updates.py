"""
The callbacks that report the updates of a caller's task: one for each event of its run that callers are told of.

They are stored in the transaction that writes the event, one queue for each push notification config of the task. The
payload is the number of the event; 0 stands for the task as it was when its message was stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.stores.base import Transaction, Transition
from trunkline.stores.port.automation.callbacks import NewCallback
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey

PUSH_KIND = "push"
# Those of which a task's updates follow.
REPORTED_EVENTS = frozenset(
    {
        "RunStarted",
        "RunContinued",
        "StepProgress",
        "RunWaiting",
        "RunCompleted",
        "RunFailed",
        "RunCancelled",
    }
)
_PREFIX = f"{PUSH_KIND}/"
_TASK_STORED = 0


def queue_of(key: PushConfigKey) -> str:
    return f"{_PREFIX}{key.run_id}/{key.id}"


def key_of(queue: str) -> PushConfigKey:
    run_id, _, config_id = queue.removeprefix(_PREFIX).partition("/")
    return PushConfigKey(RunId(run_id), config_id)


def event_number(payload: bytes) -> int | None:
    """None: it reports the task as it was when its message was stored."""
    return int(payload) or None


async def put_first_configs(tx: Transaction, configs: Sequence[PushConfig]) -> None:
    """Configs that came with the messages that have started their tasks, each with the task as its first report."""
    for config in configs:
        await tx.push_configs.put(config, most=1)
    await tx.callbacks.put([_callback(config.key, _TASK_STORED) for config in configs])


async def put_task_updates(tx: Transaction, transitions: Sequence[Transition]) -> bool:
    """The reports of transitions of callers' tasks that have been written. False: nobody wants any."""
    events = {
        transition.state.id: [event.seq for event in transition.events if event.type in REPORTED_EVENTS]
        for transition in transitions
    }
    keys = await tx.push_configs.keys_of([run_id for run_id, seqs in events.items() if seqs])
    if keys:
        await tx.callbacks.put([_callback(key, seq) for key in keys for seq in events[key.run_id]])
    return bool(keys)


def _callback(key: PushConfigKey, seq: int) -> NewCallback:
    return NewCallback(queue=queue_of(key), kind=PUSH_KIND, payload=str(seq).encode())
