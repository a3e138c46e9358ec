"""
Programs that are agents, good and bad: `python programs.py KIND FOLDER`.

Each notes its process id in the folder when it starts, so that a test can see which have run, and that none is left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

FOREVER = 600


def requests() -> Iterator[dict[str, object]]:
    for line in sys.stdin:
        yield json.loads(line)


def write(*words: object, to: TextIO = sys.stdout) -> None:
    to.write(" ".join(map(str, words)) + "\n")
    to.flush()


def answer(request: dict[str, object], result: object) -> None:
    reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    write(json.dumps(reply))


def echo() -> None:
    for request in requests():
        answer(request, request.get("params"))


def simple() -> None:
    for request in requests():
        write(json.dumps({"task_id": request["task_id"], "status": "success", "output": request["input"]}))


def backwards() -> None:
    """Waits for three requests, and answers the last one first."""
    kept: list[dict[str, object]] = []
    for request in requests():
        kept.append(request)
        if len(kept) == 3:
            while kept:
                last = kept.pop()
                answer(last, last["params"])


def unreadable() -> None:
    """Says that it could not read the first request when the last one has come, which it answers."""
    for request in requests():
        if request["method"] == "begin":
            answer(request, "begun")
        if request["method"] == "end":
            write('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}')
            answer(request, "end")


def chatty() -> None:
    """Prints what is no answer before each answer, and answers what nobody has asked."""
    for request in requests():
        write("working on it")
        write('{"level": "info"}')
        write()
        answer({"id": "nobody's"}, "?")
        answer(request, "done")


def dies() -> None:
    """At the second request of each life, unanswered."""
    for number, request in enumerate(requests()):
        if number:
            sys.exit(3)
        answer(request, os.getpid())


def killed() -> None:
    for _ in requests():
        os.kill(os.getpid(), signal.SIGKILL)


def endless() -> None:
    for _ in requests():
        while True:
            sys.stdout.write("x" * 65_536)
            sys.stdout.flush()


def deaf() -> None:
    """Does not read, and does not end when its input does."""
    time.sleep(FOREVER)


def stubborn() -> None:
    """Ends neither with its input nor when it is told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    echo()
    time.sleep(FOREVER)


def silent() -> None:
    """Answers nothing until it is asked for the end, and then that."""
    for request in requests():
        if request["method"] == "end":
            answer(request, "end")


def environment() -> None:
    for request in requests():
        answer(request, dict(os.environ))


def descriptors() -> None:
    """Says which it has; the last one is that of the list itself."""
    for request in requests():
        answer(request, sorted(map(int, os.listdir("/proc/self/fd")))[:-1])


def talks() -> None:
    """Says what it was told, on its standard error."""
    for request in requests():
        write("got", json.dumps(request), to=sys.stderr)
        write("variable", os.environ.get("WORKER_KEY"), "x" * 100_000, to=sys.stderr)
        answer(request, "done")


def floods() -> None:
    for request in requests():
        for number in range(2_000):
            write("line", number, to=sys.stderr)
        answer(request, "done")


def alone() -> None:
    """Says which of those that were started before it still run; closes its output when asked to hang."""
    others = [int(note.name) for note in Path(sys.argv[2]).iterdir() if int(note.name) != os.getpid()]
    alive = [pid for pid in others if Path(f"/proc/{pid}").exists()]
    for request in requests():
        if request["method"] == "hang":
            os.close(1)
            time.sleep(FOREVER)
        answer(request, {"me": os.getpid(), "others": alive})


def leaves_a_child() -> None:
    """Ends, while a program that it has started holds its output open."""
    for _ in requests():
        subprocess.Popen(["sleep", str(FOREVER)])
        os._exit(5)


KINDS: dict[str, Callable[[], None]] = {
    kind.__name__: kind
    for kind in (
        echo,
        simple,
        backwards,
        unreadable,
        chatty,
        dies,
        killed,
        endless,
        deaf,
        stubborn,
        silent,
        environment,
        descriptors,
        talks,
        floods,
        alone,
        leaves_a_child,
    )
}


def main() -> None:
    kind, folder = sys.argv[1:]
    Path(folder, str(os.getpid())).touch()
    KINDS[kind]()


if __name__ == "__main__":
    main()
