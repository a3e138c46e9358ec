"""Rules of remote tasks: polls, streams, repeated calls, batches and attachments."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_STREAMS = "tests/scenarios/test_streams.py"
_SECOND_CALLS = "tests/scenarios/test_resending.py"
_CONVERSATIONS = "tests/scenarios/test_conversations.py"
_TASKS = "tests/contract/stores/test_tasks.py"
_REFERENCES = "tests/scenarios/hostile/test_file_references.py"
_BLOBS = "tests/contract/test_blobs.py"
_PROGRESS = "tests/unit/bridge/calls/test_progress.py"
_STREAM_TIMEOUT = "tests/unit/bridge/calls/test_stream_timeout.py"
_CALLS = "tests/unit/bridge/calls/test_active_calls.py"
_BATCHES = "tests/unit/bridge/calls/test_batch_sender.py"

REMOTE_TASKS: Sequence[Rule] = (
    Rule(
        name="task-known-while-its-stream-is-open",
        breaks="If a bridge dies during a stream, the remote task is not known and the agent gets the message again.",
        symbol="trunkline.bridge.calls.progress:ProgressReporter.add_event",
        change=Change("assigned value", 3, of=3, becomes="None"),
        caught_by=(f"{_PROGRESS}::test_that_an_agent_has_the_task_is_written_while_its_stream_is_open",),
    ),
    Rule(
        name="open-stream-is-not-the-end",
        breaks="A task counts as done while its agent still streams: if the bridge dies, the run waits forever.",
        symbol="trunkline.stores.port.tasks:TaskAnswer.new_status",
        change=Change("condition", 1, of=2, becomes="it and it.value.poll_at is not None"),
        caught_by=(
            f"{_TASKS}::test_a_task_whose_stream_is_open_when_its_process_dies_is_asked_for[sqlite-False]",
            f"{_TASKS}::test_a_task_whose_stream_is_open_when_its_process_dies_is_asked_for[postgres-False]",
        ),
        shows="Error",
    ),
    Rule(
        name="resumed-stream-is-confirmed",
        breaks="The output of an interrupted stream lacks what the agent sent in between.",
        symbol="trunkline.bridge.calls.session:AgentSession._listen",
        change=Change("call statement", becomes="if (again := it.value):\n    return again.outcome"),
        caught_by=(
            f"{_STREAMS}::test_a_stream_that_is_cut_is_taken_up_again_and_then_the_task_is_read[embedded-starts again]",
        ),
    ),
    Rule(
        name="long-stream-is-released",
        breaks="A task of half an hour holds a connection and a lease for half an hour.",
        symbol="trunkline.bridge.calls.streams:StreamTimeout._reschedule",
        change=Change("argument", becomes="None"),
        caught_by=(
            f"{_STREAM_TIMEOUT}::test_an_agent_that_has_the_task_is_let_go_when_the_time_is_up",
            f"{_STREAM_TIMEOUT}::test_who_leaves_waits_for_no_agent_that_can_be_asked_later",
        ),
    ),
    Rule(
        name="progress-by-its-number",
        breaks="Of all the progress that an agent reports, only the first report reaches the history.",
        symbol="trunkline.executor.input_sources:_key",
        change=Change("assigned value", becomes="''"),
        caught_by=(f"{_STREAMS}::test_what_an_agent_says_when_it_is_asked_is_news_once[embedded]",),
    ),
    Rule(
        name="repeated-progress-once",
        breaks="Progress that an agent repeats at every poll is in the history once per poll.",
        symbol="trunkline.bridge.calls.progress:ProgressReporter.report_once",
        change=Change(
            "call",
            3,
            of=6,
            becomes="it.func(it.args[0], it.args[1],"
            " f'said.{it.func.value._claim.polls}.{it.func.value._claim.epoch}')",
        ),
        caught_by=(
            f"{_STREAMS}::test_what_an_agent_says_when_it_is_asked_is_news_once[embedded]",
            f"{_PROGRESS}::test_what_is_said_whenever_the_agent_is_asked_has_the_same_number_each_time",
        ),
    ),
    Rule(
        name="progress-numbers-of-an-epoch",
        breaks="Progress reported to a bridge that took over a task counts as a repetition, and is lost.",
        symbol="trunkline.bridge.calls.progress:ProgressReporter._report_waiting",
        change=Change("f-string", becomes="f'{it.values[2].value}'"),
        caught_by=(f"{_PROGRESS}::test_each_piece_has_its_own_number_under_every_claim",),
    ),
    Rule(
        name="never-called-twice",
        breaks="An agent that must not be called twice is called again after its answer was lost.",
        symbol="trunkline.bridge.calls.agent_call:OpenCall._check_before_resend",
        change=ReplaceText("never", ""),
        caught_by=(f"{_SECOND_CALLS}::test_an_agent_that_is_not_to_be_called_twice_is_not[embedded]",),
    ),
    Rule(
        name="task-looked-up-before-it-is-sent-again",
        breaks="An agent that has the task, and could confirm it, gets it again.",
        symbol="trunkline.bridge.calls.agent_call:OpenCall._check_before_resend",
        change=ReplaceText("ask_first", ""),
        caught_by=(
            f"{_SECOND_CALLS}::test_an_agent_that_lists_its_tasks_is_asked_and_not_called_again[embedded]",
        ),
    ),
    Rule(
        name="failed-lookup-is-not-a-failure",
        breaks="An agent that cannot say whether it has a task counts as having failed the task.",
        symbol="trunkline.bridge.calls.session:AgentSession.find",
        change=Change("operand", 2, of=2, becomes="False"),
        caught_by=(
            f"{_SECOND_CALLS}::test_an_agent_that_cannot_say_whether_it_has_the_task_gets_the_same_message[embedded]",
        ),
    ),
    Rule(
        name="unknown-outcome-of-a-dead-process",
        breaks="A message that a dead process may have sent is sent again without a lookup and without a trace.",
        symbol="trunkline.bridge.calls.results:resend_doubt",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(
            f"{_SECOND_CALLS}::test_a_process_that_died_in_a_call_leaves_the_same_message_to_the_next[embedded]",
        ),
        shows="Error",
    ),
    Rule(
        name="unknown-outcome-reaches-the-next-attempt",
        breaks="The attempt after a lost answer does not know about it: an agent is called twice against its policy.",
        symbol="trunkline.bridge.calls.results:mark_doubtful",
        change=Change("return value", 2, of=2, becomes="it.args[0]"),
        caught_by=(
            f"{_SECOND_CALLS}::test_an_agent_that_is_not_to_be_called_twice_is_not[embedded]",
            f"{_SECOND_CALLS}::test_an_agent_that_lists_its_tasks_is_asked_and_not_called_again[embedded]",
        ),
    ),
    Rule(
        name="lost-task-is-not-a-failure",
        breaks="An agent that has lost its task gets the message under a new id, and may do the work twice.",
        symbol="trunkline.bridge.calls.results:after_failed_poll",
        change=Change("condition", 1, of=3, becomes="False"),
        caught_by=(f"{_SECOND_CALLS}::test_an_agent_that_has_lost_its_task_gets_the_same_message[embedded]",),
    ),
    Rule(
        name="failed-poll-is-repeated",
        breaks="A task that the agent still works on fails because one poll was lost.",
        symbol="trunkline.bridge.calls.results:after_failed_poll",
        change=Change("condition", 2, of=3, becomes="False"),
        caught_by=(
            f"{_CONVERSATIONS}::test_a_question_how_it_stands_that_fails_is_asked_again[embedded-HTTP 503]",
            f"{_CONVERSATIONS}::test_a_question_how_it_stands_that_fails_is_asked_again[embedded-no answer]",
        ),
    ),
    Rule(
        name="cancelled-when-the-agent-confirms",
        breaks="A run counts as cancelled while its agent still works.",
        symbol="trunkline.bridge.calls.active_calls:ActiveCalls._call",
        change=Change("assigned value", 4, of=8, becomes="it.orelse"),
        caught_by=(f"{_CALLS}::test_a_call_that_is_broken_off_ends_when_its_agent_has_confirmed",),
    ),
    Rule(
        name="batch-by-its-ids",
        breaks="A task in a batch gets the answer of another task.",
        symbol="trunkline.protocols.json_rpc.batches:split_answers",
        change=Change(
            "assignment", 6, of=8, becomes="it.targets[0].value[ids[len(it.targets[0].value)]] = it.value"
        ),
        caught_by=(
            "tests/unit/protocols/json_rpc/test_batches.py::test_answers_are_found_by_their_id_in_any_order",
            "tests/unit/protocols/json_rpc/test_batches.py::test_a_missing_answer_is_missing_for_its_own_task_only",
        ),
    ),
    Rule(
        name="batch-of-the-same-credentials",
        breaks="A task is sent with the credentials of another caller.",
        symbol="trunkline.bridge.calls.batches:BatchSender._join",
        change=Change("argument", 1, of=13, becomes="()"),
        caught_by=(f"{_BATCHES}::test_other_credentials_are_another_batch",),
    ),
    Rule(
        name="file-before-its-reference",
        breaks="A step's output names a file that was not stored.",
        symbol="trunkline.bridge.calls.attachments:Attachments._move_files",
        change=Change(
            "assigned value", 3, of=5, becomes="__import__('hashlib').sha256(it.value.args[1]).hexdigest()"
        ),
        caught_by=(
            "tests/scenarios/test_attachments.py::test_a_large_file_is_stored_outside_the_output_and_reaches_the_next_agent_whole[embedded]",
        ),
    ),
    Rule(
        name="references-of-agents-are-data",
        breaks="A few bytes of an agent make the bridge load a large file thousands of times.",
        symbol="trunkline.bridge.calls.attachments:_disarm_references",
        change=Drop("del statement"),
        caught_by=(
            f"{_REFERENCES}::test_a_reference_that_an_agent_made_up_is_never_expanded[embedded-plain]",
        ),
    ),
    Rule(
        name="files-of-a-request-have-a-limit",
        breaks="A step that names a file often enough takes all memory, again after every restart.",
        symbol="trunkline.bridge.calls.attachments:Attachments._load",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_REFERENCES}::test_the_files_of_one_request_have_a_limit[embedded]",),
    ),
    Rule(
        name="files-of-related-runs-only",
        breaks="A run sends its agents the files of any other run.",
        symbol="trunkline.bridge.calls.attachments:Attachments._check_related",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_REFERENCES}::test_a_run_cannot_send_the_files_of_an_unrelated_run[embedded]",),
    ),
    Rule(
        name="file-whole-before-its-name",
        breaks="A partially written file is served as complete.",
        symbol="trunkline.stores.blobs.folder:BlobFolder._put",
        change=Change("f-string", 2, of=2, becomes="digest"),
        caught_by=(f"{_BLOBS}::test_a_file_that_could_not_be_written_to_its_end_is_not_there",),
    ),
    Rule(
        name="file-names-stay-inside",
        breaks="A client with read access to a run's files can read any file on the machine.",
        symbol="trunkline.stores.blobs.folder:BlobFolder._get",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_BLOBS}::test_a_name_that_leads_elsewhere_is_no_file[folder-{'0' * 36}-../secret]",),
    ),
    Rule(
        name="file-folders-stay-inside",
        breaks="A client with read access to a run's files can read files in other folders.",
        symbol="trunkline.stores.blobs.folder:BlobFolder._place",
        change=Change("return value", becomes="it.body"),
        caught_by=(f"{_BLOBS}::test_a_name_that_leads_elsewhere_is_no_file[folder-..-{'0' * 64}]",),
    ),
)
