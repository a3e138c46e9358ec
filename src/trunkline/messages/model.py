"""
What travels between executor and bridge.

    AgentTask    executor -> bridge   call this agent with this input
    CancelTask   executor -> bridge   stop that call
    AgentResult  bridge -> executor   what became of it

No secret is ever in a message: the bridge resolves agents and secrets by their names.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages.caller_message import CallerMessage
from trunkline.messages.trace import TraceContext
from trunkline.retry_policy import RetryPolicy


class AgentTask(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One task for an agent: one attempt of a step."""

    task_id: str
    input_data: Json = None
    correlation_id: str = ""
    run_id: str = ""
    step: str = ""
    # Counts the calls of a step, from 1. Two attempts share a task_id when the first one got no answer.
    attempt: int = 1
    agent: str = ""
    timeout_ms: int | None = None
    at_most_once: bool = False
    # The conversation that this call belongs to, where the dialect has one.
    context_id: str | None = None
    # An attempt before got no answer: the agent may have the task already.
    doubtful: bool = False
    # Set when this call answers a question of the agent: the agent's own task goes on.
    remote_task_id: str | None = None
    # The bridges that may call the agent; None: those of no pool. Set when the task is published.
    pool: str | None = None
    # The trace that the call belongs to.
    trace: TraceContext | None = None
    # Where the bridge puts secrets into the input: JSON pointer to the secret's name. What looks like a secret
    # anywhere else is data.
    secrets: dict[str, str] = {}
    # Secrets, by name, that other messages of the run give to the agent: hidden if it repeats them, not sent.
    told_secrets: list[str] = []
    # The last agent event that was known when the run was accepted: it decides the routes to agents.
    routes: int = 0
    # How often the agent was polled for this task. Only the bridge that polls it sets this.
    polls: int = 0
    # The A2A message that the agent gets, unchanged, in place of one made of the input.
    message: CallerMessage | None = None
    # The saved version of the workflow, by its id and number, in which the step has a schema for its output: the bridge
    # checks the output. None: it is not checked.
    schema_of: tuple[str, int] | None = None
    # The block of the workflow that has the step; None: the workflow itself.
    block: str | None = None
    # Of the topic of results: there the executor listens that has the run in its memory.
    reply_partition: int | None = None

    @property
    def is_passed_on(self) -> bool:
        """The agent is published, and its caller gets its answer."""
        return self.message is not None and self.message.is_for_agent


class CancelTask(msgspec.Struct, kw_only=True, omit_defaults=True):
    task_id: str
    attempt: int
    run_id: str
    # Whose pool of bridges has the task.
    agent: str = ""


class StepError(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why a call, a step or a run failed. `code` is one of `messages.ERROR_CODES`."""

    code: str
    message: str
    fix: str = ""
    step: str | None = None
    attempt: int | None = None
    jsonrpc_code: int | None = None
    http_status: int | None = None
    # What could be extracted from the agent's response despite the failure.
    detail: Json = None
    # A command of the command line that helps, as it is typed; `fix` has it, too.
    fix_command: str | None = None
    # Of a step with `for_each`: the index of the item that failed it.
    cause_item: int | None = None
    # How long the agent asks us to wait (Retry-After).
    retry_after_ms: int | None = None
    # The message was sent, by this attempt or one before, and no answer came: the agent may have the task.
    doubtful: bool = False
    # The agent did not begin the task: its state is `rejected`.
    rejected: bool = False


class Question(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What an agent wants to know before it goes on."""

    kind: Literal["input", "auth"]
    text: str
    data: Json = None


class Progress(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What an agent says while it works, as much as is worth showing."""

    # `called_again`: not the agent's words, but why it got the same message once more.
    kind: Literal["status", "artifact", "called_again"]
    text: str = ""
    # Of an artifact: its id and name, and whether `text` goes on where the last piece ended.
    artifact_id: str | None = None
    name: str | None = None
    append: bool = False
    last: bool = False
    # What is not text: parts as the agent sent them, cut where they are long.
    parts: list[Json] = []


NO_OUTPUT = msgspec.Raw(b"null")

ResultStatus = Literal["success", "error", "working", "progress", "interrupted", "cancelled", "unknown"]


class AgentResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """
    The result of a task.

    `working` and `progress` are news, not an end: the agent has taken the task and will be asked again, or has said
    something meanwhile. `unknown` ends an `at_most_once` call whose answer was lost.
    """

    task_id: str
    run_id: str
    step: str
    attempt: int
    status: ResultStatus
    at: Instant
    # That of the task; a bridge of an earlier version does not send it.
    correlation_id: str = ""
    # JSON that the dialect encoded. It is not decoded again before it reaches the reader.
    output: msgspec.Raw = NO_OUTPUT
    error: StepError | None = None
    question: Question | None = None
    protocol: str | None = None
    context_id: str | None = None
    remote_task_id: str | None = None
    warnings: list[str] = []
    # Of a success: how the output violates the step's schema.
    output_errors: list[str] = []
    # The agent's own policy, for a step that has none: the executor alone decides on retries.
    retry: RetryPolicy | None = None
    # Of `progress`: what is new, and its number among the task's news.
    progress: list[Progress] = []
    number: str = ""
    # That of the task.
    reply_partition: int | None = None


class ReplyMessage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A person's answer to an agent's question."""

    text: str | None = None
    data: Json = None
    parts: list[JsonObject] | None = None
    # The A2A message that says all this.
    message: CallerMessage | None = None
