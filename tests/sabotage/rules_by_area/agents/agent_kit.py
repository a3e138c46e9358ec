"""Rules of the agent kit: each message is carried out once, and callers learn nothing that is not theirs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_ANSWERS = "tests/unit/agentkit/test_answers.py"
_REQUESTS = "tests/unit/agentkit/test_requests.py"
_TASKS = "tests/unit/agentkit/test_tasks.py"

AGENT_KIT: Sequence[Rule] = (
    Rule(
        name="kit-message-done-once",
        breaks="A caller that got no answer and repeats its message has the work done twice.",
        symbol="trunkline.agentkit.task_store:InMemoryTaskStore.submit",
        change=Change("assigned value", becomes="None"),
        caught_by=(
            f"{_TASKS}::test_the_same_message_gets_the_same_task_while_it_runs_and_afterwards",
            f"{_TASKS}::test_simple_a2a_recognises_a_task_by_its_id",
        ),
    ),
    Rule(
        name="kit-reply-given-once",
        breaks="A repeated reply is rejected although it was accepted.",
        symbol="trunkline.agentkit.task_store:InMemoryTaskStore._reply",
        change=Drop("assignment", 2, of=2),
        caught_by=(f"{_ANSWERS}::test_a_question_waits_for_its_reply",),
    ),
    Rule(
        name="kit-other-content-is-another-message",
        breaks="A message with an id that another caller has used gets the answer to the other message.",
        symbol="trunkline.agentkit.messages:Message.key",
        change=Change("argument", 1, of=2, becomes="it.args[0].id.encode()"),
        caught_by=(f"{_TASKS}::test_another_content_under_the_same_id_is_another_task",),
    ),
    Rule(
        name="kit-task-outlives-its-caller",
        breaks="A caller whose connection breaks takes its task with it, and the work is lost.",
        symbol="trunkline.agentkit.app:Agent._answer_simple_a2a",
        change=Change(
            "call statement",
            1,
            of=2,
            becomes="try:\n    it\nexcept BaseException:\n    it.value.value.func.value.cancel()\n    raise",
        ),
        caught_by=(f"{_TASKS}::test_a_caller_that_goes_away_does_not_end_the_task",),
    ),
    Rule(
        name="kit-cancel-reaches-the-function",
        breaks="A cancelled task keeps running, and its work is done anyway.",
        symbol="trunkline.agentkit.task_execution:TaskExecution.cancel",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_TASKS}::test_a_cancel_cancels_the_handler",),
    ),
    Rule(
        name="kit-running-tasks-are-kept",
        breaks="A busy agent forgets tasks that it has accepted but not finished.",
        symbol="trunkline.agentkit.task_store:InMemoryTaskStore._make_room",
        change=Change("argument", 1, of=4, becomes="iter(it.generators[0].iter)"),
        caught_by=(
            f"{_TASKS}::test_when_every_place_is_taken_what_has_ended_makes_room_and_what_runs_does_not",
        ),
    ),
    Rule(
        name="kit-exceptions-are-only-logged",
        breaks="The message of an unexpected exception, with whatever is in it, is sent to the caller.",
        symbol="trunkline.agentkit.handlers:perform",
        change=Change("argument", 16, of=16, becomes="__import__('traceback').format_exc()"),
        caught_by=(f"{_ANSWERS}::test_a_mistake_in_a_handler_is_for_the_log_and_not_for_the_caller",),
    ),
    Rule(
        name="kit-lists-one-context",
        breaks="A list request without a context is answered, so a caller can see the tasks of others.",
        symbol="trunkline.agentkit.protocols.task_list:list_tasks",
        change=Change(
            "condition", 1, of=2, becomes="not isinstance((context_id := (context_id or '')), str)"
        ),
        caught_by=(f"{_REQUESTS}::test_a_wrong_request_gets_its_code_and_its_id[a list of everything]",),
    ),
    Rule(
        name="kit-rejects-browsers",
        breaks="A page on the internet can call the agents on its visitor's machine.",
        symbol="trunkline.agentkit.app:Agent._serve",
        change=ReplaceText("origin", "no-such-header"),
        caught_by=(f"{_REQUESTS}::test_a_page_in_a_browser_is_turned_away",),
    ),
    Rule(
        name="kit-request-size",
        breaks="One request can fill the agent's memory.",
        symbol="trunkline.agentkit.asgi:read_body",
        change=Change("condition", 3, of=4, becomes="it.left > 2 * it.comparators[0]"),
        caught_by=(f"{_REQUESTS}::test_a_request_that_is_too_large_is_not_read_to_its_end",),
    ),
    Rule(
        name="kit-request-depth",
        breaks="JSON that is nested without limit reaches recursive functions.",
        symbol="trunkline.agentkit.json_values:decode",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_REQUESTS}::test_a_wrong_request_gets_its_code_and_its_id[too deep]",),
    ),
    Rule(
        name="kit-answers-have-the-requests-id",
        breaks="A caller takes the answer for the answer to another request.",
        symbol="trunkline.agentkit.jsonrpc:result",
        change=Change("element", 2, of=3, becomes="str(it)"),
        caught_by=(f"{_REQUESTS}::test_an_answer_has_the_id_of_its_request[0]",),
    ),
)
