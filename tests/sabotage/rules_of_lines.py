"""Rules of the line to an agent: long tasks, streams, second calls, batches, and files on their way."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_STREAMS = "tests/scenarios/test_streams.py"
_SECOND_CALLS = "tests/scenarios/test_second_calls.py"
_CONVERSATIONS = "tests/scenarios/test_conversations.py"
_TASKS = "tests/contract/test_store_tasks.py"
_BLOBS = "tests/contract/test_blobs.py"
_NEWS = "tests/unit/bridge/calls/test_progress.py"
_PATIENCE = "tests/unit/bridge/calls/test_stream_timeout.py"
_CALLS = "tests/unit/bridge/calls/test_active_calls.py"
_BATCHES = "tests/unit/bridge/calls/test_batch_sender.py"

_TAKEN_UP_AGAIN = "self._resubscribe(session, resolved, claim, outcome.remote_task_id, news, patience)"

LINES: Sequence[Rule] = (
    Rule(
        name="task-known-while-its-stream-is-open",
        breaks="A bridge that dies over a stream leaves nothing to ask for: the agent gets the message again.",
        file="bridge/calls/progress.py",
        old="self._announcement = asyncio.get_running_loop().call_soon(self._announce)",
        new="self._announcement = None",
        caught_by=(f"{_NEWS}::test_that_an_agent_has_the_task_is_written_while_its_stream_is_open",),
    ),
    Rule(
        name="open-stream-is-no-end",
        breaks="A task counts as done while its agent still talks: if the bridge dies, its run waits for ever.",
        file="stores/port/tasks.py",
        old="        if self.holds:\n",
        new="        if self.holds and self.poll_at is not None:\n",
        caught_by=(
            f"{_TASKS}::test_a_task_whose_stream_is_open_when_its_process_dies_is_asked_for[sqlite-False]",
            f"{_TASKS}::test_a_task_whose_stream_is_open_when_its_process_dies_is_asked_for[postgres-False]",
        ),
        shows="Error",
    ),
    Rule(
        name="stream-taken-up-again-is-confirmed",
        breaks="The output of a stream that was cut lacks what was said in between.",
        file="bridge/calls/client.py",
        old=f"                await {_TAKEN_UP_AGAIN}\n",
        new=f"                if again := await {_TAKEN_UP_AGAIN}:\n                    return again.outcome\n",
        caught_by=(
            f"{_STREAMS}::test_a_stream_that_is_cut_is_taken_up_again_and_then_the_task_is_read[embedded-begins anew]",
        ),
    ),
    Rule(
        name="line-is-let-go",
        breaks="A task of half an hour holds a socket and a lease for half an hour.",
        file="bridge/calls/streams.py",
        old="            self._timeout.reschedule(self._end)\n",
        new="            self._timeout.reschedule(None)\n",
        caught_by=(
            f"{_PATIENCE}::test_an_agent_that_has_the_task_is_let_go_when_the_time_is_up",
            f"{_PATIENCE}::test_who_leaves_waits_for_no_agent_that_can_be_asked_later",
        ),
    ),
    Rule(
        name="news-by-its-number",
        breaks="Of all that an agent says while it works only the first piece reaches the history.",
        file="executor/input_sources.py",
        old='number = f"/{result.number}" if result.number else ""',
        new='number = ""',
        caught_by=(f"{_STREAMS}::test_what_an_agent_says_when_it_is_asked_is_news_once[embedded]",),
    ),
    Rule(
        name="same-words-once",
        breaks="What an agent says whenever it is asked is in the history as often as it was asked.",
        file="bridge/calls/progress.py",
        old='f"said.{sha256(text.encode()).hexdigest()[:16]}"',
        new='f"said.{self._claim.polls}.{self._claim.epoch}"',
        caught_by=(
            f"{_STREAMS}::test_what_an_agent_says_when_it_is_asked_is_news_once[embedded]",
            f"{_NEWS}::test_what_is_said_whenever_the_agent_is_asked_has_the_same_number_each_time",
        ),
    ),
    Rule(
        name="numbers-of-an-epoch",
        breaks="What a bridge hears that has taken a task over passes for a repetition, and is lost.",
        file="bridge/calls/progress.py",
        old='f"{self._claim.epoch}.{self._number}"',
        new='f"{self._number}"',
        caught_by=(f"{_NEWS}::test_each_piece_has_a_number_of_its_own_whoever_tells_it",),
    ),
    Rule(
        name="never-called-twice",
        breaks="An agent that must not be called twice is called again after its answer was lost.",
        file="bridge/calls/agent_call.py",
        old='        if policy == "never":\n',
        new='        if policy == "":\n',
        caught_by=(f"{_SECOND_CALLS}::test_an_agent_that_is_not_to_be_called_twice_is_not[embedded]",),
    ),
    Rule(
        name="asked-before-it-is-called-again",
        breaks="An agent that has the task, and would have said so, gets it again.",
        file="bridge/calls/agent_call.py",
        old='        if policy == "ask_first":\n',
        new='        if policy == "":\n',
        caught_by=(
            f"{_SECOND_CALLS}::test_an_agent_that_lists_its_tasks_is_asked_and_not_called_again[embedded]",
        ),
    ),
    Rule(
        name="failed-question-is-no-answer",
        breaks="An agent that cannot say whether it has a task passes for one that has failed at it.",
        file="bridge/calls/client.py",
        old="if isinstance(found, Failed) and ERROR_CODES[found.error.code].answered:",
        new='if isinstance(found, Failed) and found.error.code == "":',
        caught_by=(
            f"{_SECOND_CALLS}::test_an_agent_that_cannot_say_whether_it_has_the_task_gets_the_same_message[embedded]",
        ),
    ),
    Rule(
        name="doubt-of-a-dead-process",
        breaks="A message that a dead process may have sent is sent again without a question and without a word.",
        file="bridge/calls/results.py",
        old="    if claim.epoch > 1:\n",
        new="    if claim.epoch < 1:\n",
        caught_by=(
            f"{_SECOND_CALLS}::test_a_process_that_died_in_a_call_leaves_the_same_message_to_the_next[embedded]",
        ),
        shows="Error",
    ),
    Rule(
        name="doubt-goes-to-the-next-attempt",
        breaks="The attempt after a lost answer knows nothing of it: an agent is called twice against its policy.",
        file="bridge/calls/results.py",
        old="    return msgspec.structs.replace(error, doubtful=True)\n",
        new="    return error\n",
        caught_by=(
            f"{_SECOND_CALLS}::test_an_agent_that_is_not_to_be_called_twice_is_not[embedded]",
            f"{_SECOND_CALLS}::test_an_agent_that_lists_its_tasks_is_asked_and_not_called_again[embedded]",
        ),
    ),
    Rule(
        name="lost-task-is-no-answer",
        breaks="An agent that has lost its task gets the message under another id, and may do the work twice.",
        file="bridge/calls/results.py",
        old="    if outcome.task_unknown:\n",
        new='    if outcome.task_unknown and error.code == "":\n',
        caught_by=(f"{_SECOND_CALLS}::test_an_agent_that_has_lost_its_task_gets_the_same_message[embedded]",),
    ),
    Rule(
        name="unanswered-question-is-asked-again",
        breaks="A task that the agent works on fails because one question how it stands was lost.",
        file="bridge/calls/results.py",
        old="if overloaded or error.http_status == _TOO_MANY or not ERROR_CODES[error.code].answered:",
        new='if error.code == "":',
        caught_by=(
            f"{_CONVERSATIONS}::test_a_question_how_it_stands_that_fails_is_asked_again[embedded-HTTP 503]",
            f"{_CONVERSATIONS}::test_a_question_how_it_stands_that_fails_is_asked_again[embedded-no answer]",
        ),
    ),
    Rule(
        name="cancelled-when-the-agent-has-confirmed",
        breaks="A run counts as cancelled while its agent still works.",
        file="bridge/calls/active_calls.py",
        old="finished = None if is_told else self._invoker.cancelled(claim)",
        new="finished = self._invoker.cancelled(claim)",
        caught_by=(f"{_CALLS}::test_a_call_that_is_broken_off_ends_when_its_agent_has_confirmed",),
    ),
    Rule(
        name="batch-by-its-ids",
        breaks="In a batch a task gets the answer of another.",
        file="protocols/batches.py",
        old="            found[name] = item\n",
        new="            found[ids[len(found)]] = item\n",
        caught_by=(
            "tests/unit/protocols/test_batches.py::test_answers_are_found_by_their_id_in_any_order",
            "tests/unit/protocols/test_batches.py::test_a_missing_answer_is_missing_for_its_own_task_only",
        ),
    ),
    Rule(
        name="batch-of-the-same-credentials",
        breaks="A task travels under the name of somebody else.",
        file="bridge/calls/batches.py",
        old="key: _Key = (url, frozenset(shared), tls)",
        new="key: _Key = (url, frozenset(list(shared)[:0]), tls)",
        caught_by=(f"{_BATCHES}::test_other_credentials_are_another_batch",),
    ),
    Rule(
        name="file-before-its-reference",
        breaks="A step's output names a file that nobody has kept.",
        file="bridge/calls/attachments.py",
        old="digest = await self._blobs.put(RunId(run_id), content)",
        new='digest = __import__("hashlib").sha256(content).hexdigest()',
        caught_by=(
            "tests/scenarios/test_files.py::test_a_long_file_is_kept_beside_the_output_and_reaches_the_next_agent_whole[embedded]",
        ),
    ),
    Rule(
        name="file-whole-before-its-name",
        breaks="A file that was cut off while it was written passes for the whole of it.",
        file="stores/blobs/folder.py",
        old='unfinished = place / f".{new_id()}"',
        new="unfinished = place / digest",
        caught_by=(f"{_BLOBS}::test_a_file_that_could_not_be_written_to_its_end_is_not_there",),
    ),
    Rule(
        name="file-names-stay-inside",
        breaks="Whoever may read a run's files can read any file of the machine.",
        file="stores/blobs/folder.py",
        old="if place is None or not _DIGEST.fullmatch(digest):",
        new="if place is None:",
        caught_by=(f"{_BLOBS}::test_a_name_that_leads_elsewhere_is_no_file[folder-{'0' * 36}-../secret]",),
    ),
    Rule(
        name="file-folders-stay-inside",
        breaks="Whoever may read a run's files can read those of other folders.",
        file="stores/blobs/folder.py",
        old="return self._folder / run_id if _RUN.fullmatch(run_id) else None",
        new="return self._folder / run_id",
        caught_by=(f"{_BLOBS}::test_a_name_that_leads_elsewhere_is_no_file[folder-..-{'0' * 64}]",),
    ),
)
