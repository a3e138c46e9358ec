"""A batch of queued inputs wakes one of the executors that are alive."""

from __future__ import annotations

from trunkline.clock import Instant
from trunkline.ids import number_of
from trunkline.services.operations.process_heartbeat import WakeShare
from trunkline.stores.port.operations import SeenProcess

NOW = Instant(0)
NUMBERS = [number_of(f"run {number}") for number in range(300)]


def process(name: str, role: str = "executor", *, alive: bool = True) -> SeenProcess:
    return SeenProcess(
        id=name, name=name, roles=("api", role), version="1", started_at=NOW, seen_at=NOW, alive=alive
    )


def test_each_number_is_for_one_of_the_executors() -> None:
    names = ["a", "b", "c"]
    seen = [
        process("dead", alive=False),
        process("bridge", "bridge"),
        *(process(name) for name in reversed(names)),
    ]
    shares = [WakeShare(name) for name in names]
    for share in shares:
        share.see(seen)
    woken = [[share.is_ours(number) for share in shares] for number in NUMBERS]
    assert {sum(each) for each in woken} == {1}
    # Evenly, more or less.
    assert all(50 < sum(column) < 150 for column in zip(*woken, strict=True))


def test_a_notification_without_a_number_is_for_all() -> None:
    share = WakeShare("a")
    share.see([process("a"), process("b")])
    assert share.is_ours(None)


def test_an_executor_that_does_not_know_the_others_looks_at_every_notification() -> None:
    share = WakeShare("a")
    assert all(share.is_ours(number) for number in NUMBERS)
    share.see([process("a"), process("b")])
    assert not all(share.is_ours(number) for number in NUMBERS)
    # Its own lease has passed.
    share.see([process("a", alive=False), process("b")])
    assert all(share.is_ours(number) for number in NUMBERS)
