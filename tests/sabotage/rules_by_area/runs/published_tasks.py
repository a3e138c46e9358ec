"""Rules of published workflows: a caller sees its own tasks, all of them, and each update once."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change
from tests.sabotage.rule import Rule

_TASKS = "tests/scenarios/publishing/test_published_workflows.py"
_TWICE = f"{_TASKS}::test_a_message_that_is_sent_twice_starts_one_task_if_the_caller_asks_for_that"
_FILES = "tests/scenarios/publishing/test_files.py"
_STREAMS = "tests/scenarios/publishing/test_streams.py"
_CALLERS = "tests/scenarios/publishing/test_callers.py"

PUBLISHED_TASKS: Sequence[Rule] = (
    Rule(
        name="task-of-another-caller",
        breaks="A caller reads and cancels the tasks of another one.",
        symbol="trunkline.publishing.tasks:TaskReader.find",
        change=Change("operand", 3, of=3, becomes="False"),
        caught_by=(f"{_CALLERS}::test_a_task_of_another_caller_does_not_exist[embedded]",),
        shows="KeyError: 'error'",
    ),
    Rule(
        name="files-of-other-runs",
        breaks="A caller reads the files of other runs through a workflow that repeats its input.",
        symbol="trunkline.publishing.files:StoredFiles._content",
        change=Change("operand", 2, of=4, becomes="False"),
        caught_by=(f"{_FILES}::test_a_caller_cannot_read_the_files_of_other_runs[embedded]",),
    ),
    Rule(
        name="message-sent-twice",
        breaks="A message that is sent again because no answer came starts a second task.",
        symbol="trunkline.publishing.operations:PublishedOperations._start",
        change=Change("keyword", 3, of=5, becomes="None"),
        caught_by=(f"{_TWICE}[embedded]",),
    ),
    Rule(
        name="update-after-a-resumption",
        breaks="A stream that is resumed repeats updates that its caller has seen.",
        symbol="trunkline.publishing.updates:TaskUpdates.after",
        change=Change("assigned value", 4, of=6, becomes="it.value"),
        caught_by=(f"{_STREAMS}::test_a_stream_is_resumed_between_two_updates_of_one_event[embedded]",),
    ),
)
