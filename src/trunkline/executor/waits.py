"""
Waits of steps: noted in the transaction that decides them.

Waits for people are noted as the tasks in their inboxes, and waits for events together with the events that had arrived
before. So an event is never lost between its arrival and the beginning of a wait, whichever of them is committed first.
"""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.ids import RunId
from trunkline.machine.effects import AwaitEvents, ListTask, StopAwaitingEvents, UnlistTask
from trunkline.machine.inputs import EventsRead, encode_input
from trunkline.machine.turn import Turn
from trunkline.services.events.intake import queued_match
from trunkline.stores.base import InputsQueued, QueuedInput, Transaction
from trunkline.stores.port.automation.received_events import EventMatch, EventWait
from trunkline.stores.port.human_tasks import ListedTask

# Of those that had arrived before a step began to wait: a few are brought at a time, since nearly always the first one
# is meant, and each is as long as an event may be.
EVENTS_AT_ONCE = 10


async def write_event_waits(tx: Transaction, turns: Sequence[Turn]) -> bool:
    """Writes what these turns mean for waits; True: their runs have something more to take in."""
    ended: dict[tuple[RunId, str], None] = {}
    waits: dict[tuple[RunId, str], EventWait] = {}
    for turn in turns:
        for effect in turn.effects:
            match effect:
                case AwaitEvents():
                    waits[turn.state.id, effect.step] = _wait(turn.state.id, effect)
                case StopAwaitingEvents(step):
                    place = turn.state.id, step
                    ended[place] = None
                    waits.pop(place, None)
                case _:
                    pass
    if ended:
        await tx.received_events.stop_awaiting(list(ended))
    if not waits:
        return False
    asked = list(waits.values())
    arrived = await tx.received_events.await_events(asked, EVENTS_AT_ONCE)
    items = [
        item for wait, found in zip(asked, arrived, strict=True) if found for item in _inputs(wait, found)
    ]
    if not items:
        return False
    await tx.input_queue.put(items)
    await tx.notify(InputsQueued())
    return True


def _wait(run_id: RunId, effect: AwaitEvents) -> EventWait:
    return EventWait(
        run_id=run_id,
        step=effect.step,
        attempt=effect.attempt,
        types=effect.types,
        key=effect.key,
        is_signal=effect.is_signal,
        last=effect.last,
    )


def _inputs(wait: EventWait, found: Sequence[EventMatch]) -> list[QueuedInput]:
    items = [queued_match(match) for match in found]
    if len(found) == EVENTS_AT_ONCE:
        last = found[-1].event.number
        read = EventsRead(wait.step, wait.attempt, last)
        items.append(
            QueuedInput(wait.run_id, f"events/{wait.step}/{wait.attempt}/{last}", encode_input(read))
        )
    return items


async def write_task_lists(tx: Transaction, turns: Sequence[Turn]) -> None:
    listed: dict[tuple[RunId, str], ListedTask] = {}
    # The last change counts: a step may ask again in the turn that ends its wait.
    ended: dict[tuple[RunId, str], None] = {}
    for turn in turns:
        for effect in turn.effects:
            if isinstance(effect, ListTask):
                place = turn.state.id, effect.step
                listed[place] = _listed_task(turn.state.id, effect)
                ended.pop(place, None)
            elif isinstance(effect, UnlistTask):
                place = turn.state.id, effect.step
                ended[place] = None
                listed.pop(place, None)
    if ended:
        await tx.human_tasks.unlist(list(ended))
    if listed:
        await tx.human_tasks.list(list(listed.values()))


def _listed_task(run_id: RunId, effect: ListTask) -> ListedTask:
    return ListedTask(
        run_id=run_id, step=effect.step, people=effect.people, since=effect.since, due=effect.due
    )
