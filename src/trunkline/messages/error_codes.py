"""The published list of error codes of steps and runs, with a fix for each."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import NamedTuple

from trunkline.messages.model import StepError


class ErrorCodeInfo(NamedTuple):
    # False: the request may have been received, but no answer came; the same message may be sent again.
    answered: bool
    # False: the request certainly never reached the agent.
    sent: bool
    advice: str
    # The command of the fix. RUN, STEP, AGENT and SECRET are placeholders.
    command: str | None = None

    @property
    def fix(self) -> str:
        """The default fix of an error with this code."""
        return _sentence(self.advice, self.command)


# `answered` and `sent`.
_NOT_SENT = (False, False)
_NO_ANSWER = (False, True)
_ANSWERED = (True, True)

ERROR_CODES: dict[str, ErrorCodeInfo] = {
    "agent_unknown": ErrorCodeInfo(
        *_NOT_SENT, advice="Register the agent: trunkline agents create NAME URL."
    ),
    "agent_not_allowed": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Add the agent to allow in the step, give it the tag that allow requires, or correct what the "
        "expression in agent returns.",
    ),
    "no_agent_found": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Register an agent with the skill (trunkline agents create NAME URL --skill SKILL), or ask for less in "
        "the step. See what there is: trunkline agents list --skill SKILL.",
    ),
    "agent_dns_failed": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Correct the host name in the agent's url, or make it resolvable where the bridge runs.",
    ),
    "agent_unreachable": ErrorCodeInfo(
        *_NOT_SENT, advice="Start the agent, or correct its url. Check that the bridge can reach the address."
    ),
    "agent_tls_failed": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Check the host name, the validity and the issuer of the agent's certificate, and the "
        "client certificate in auth_config if the agent requires one. If the agent does not use "
        "TLS, change its url to http://.",
    ),
    "agent_address_forbidden": ErrorCodeInfo(
        *_NOT_SENT,
        advice="If this address is intended, add its network or host name to TRUNKLINE_ALLOWED_NETWORKS.",
    ),
    "blob_missing": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Retry the run from the step that created the file",
        command="trunkline runs retry RUN",
    ),
    "attachments_too_large": ErrorCodeInfo(
        *_NOT_SENT, advice="Send fewer or smaller files in one step, or raise TRUNKLINE_MAX_REQUEST_BYTES."
    ),
    "out_of_resources": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Raise the limit of open files (LimitNOFILE=, ulimit -n) or the memory of the machine "
        "that runs the bridge.",
    ),
    "agent_transport_unavailable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Install or configure what the message names on the machine that runs the bridge, or "
        "change the agent's transport.",
    ),
    "agent_url_invalid": ErrorCodeInfo(*_NOT_SENT, advice="Correct the agent's url as the message says."),
    "agent_program_unknown": ErrorCodeInfo(
        *_NOT_SENT, advice="Add the program to TRUNKLINE_STDIO_COMMANDS, or correct the agent's url."
    ),
    "agent_secret_unreadable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Set the agent's auth_config again, because it was encrypted with another key. Or start "
        "Trunkline with that key (TRUNKLINE_SECRET_KEY).",
    ),
    "secret_missing": ErrorCodeInfo(
        *_NOT_SENT, advice="Set the secret, then retry the run", command="trunkline secrets set SECRET"
    ),
    "secret_unreadable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Set the secret again, because it was encrypted with another key",
        command="trunkline secrets set SECRET",
    ),
    "agent_token_refused": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Check token_url, client_id, client_secret and scope in the agent's auth_config.",
    ),
    "agent_token_unavailable": ErrorCodeInfo(
        *_NOT_SENT, advice="Check that the bridge can reach the token_url in the agent's auth_config."
    ),
    "agent_timeout": ErrorCodeInfo(
        *_NO_ANSWER, advice="Raise the step's timeout or the agent's timeout_ms, or make the agent faster."
    ),
    "agent_connection_lost": ErrorCodeInfo(
        *_NO_ANSWER, advice="Look in the agent's log for the reason why it closed the connection."
    ),
    "agent_batch_answer_missing": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Change the agent so that it answers every request of a batch, or remove batch from "
        "protocol_config.",
    ),
    "agent_task_lost": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Look in the agent's log for the reason why it lost the task, such as a restart. Make the "
        "agent store its tasks.",
    ),
    "agent_unavailable": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Look in the agent's log: the agent is stopping, or one of its dependencies is "
        "unavailable. Retrying is safe.",
    ),
    "agent_redirected": ErrorCodeInfo(
        *_ANSWERED, advice="Change the agent's url to the address that it redirects to."
    ),
    "agent_http_error": ErrorCodeInfo(
        *_ANSWERED, advice="See the request and the response", command="trunkline runs wire RUN STEP"
    ),
    "agent_answer_too_large": ErrorCodeInfo(
        *_ANSWERED, advice="Make the agent return less data, or raise TRUNKLINE_MAX_ANSWER_BYTES."
    ),
    "agent_answer_compressed": ErrorCodeInfo(
        *_ANSWERED,
        advice="Disable compression in the agent or in the proxy in front of it. Trunkline requests "
        "uncompressed responses.",
    ),
    "agent_answer_malformed": ErrorCodeInfo(
        *_ANSWERED,
        advice="Compare the response with the format of the agent's protocol",
        command="trunkline runs wire RUN STEP",
    ),
    "agent_response_id_mismatch": ErrorCodeInfo(
        *_ANSWERED, advice="Change the agent so that it returns the id of the request unchanged."
    ),
    "agent_jsonrpc_error": ErrorCodeInfo(
        *_ANSWERED,
        advice="The agent rejected the request. Correct the step's input or the agent as its message says",
        command="trunkline runs wire RUN STEP",
    ),
    "agent_reported_error": ErrorCodeInfo(
        *_ANSWERED,
        advice="The agent reported a failure. Fix the cause that its message names, then retry the run",
        command="trunkline runs retry RUN",
    ),
    "output_invalid": ErrorCodeInfo(
        *_ANSWERED,
        advice="Change the agent so that its output matches output_schema, or correct the schema in the workflow. "
        "See what the agent returned",
        command="trunkline runs wire RUN STEP",
    ),
    "agent_task_failed": ErrorCodeInfo(
        *_ANSWERED,
        advice="The agent's task did not succeed. Fix the cause that its message names, then retry the run.",
    ),
    "agent_task_unfinished": ErrorCodeInfo(
        *_ANSWERED,
        advice="If the agent needs more time, raise the step's timeout. Check that the agent reports the "
        "state of its tasks (tasks/get)",
        command="trunkline agents check AGENT --active",
    ),
    "agent_protocol_unclear": ErrorCodeInfo(
        *_NOT_SENT, advice="Set the agent's protocol, or make its agent card reachable."
    ),
    "request_not_encodable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Correct the step's input in the workflow as the message says, and save the workflow.",
    ),
    "expression_failed": ErrorCodeInfo(
        *_NOT_SENT, advice="Correct the expression in the workflow, and save the workflow."
    ),
    "output_failed": ErrorCodeInfo(
        *_NOT_SENT, advice="Correct the output expression of the workflow, and save the workflow."
    ),
    "run_too_large": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Pass large data between steps as files, or pass each item only what it needs. Or raise "
        "TRUNKLINE_MAX_RUN_BYTES.",
    ),
    "outcome_unknown": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Find out whether the agent did the work, then resolve the step",
        command="trunkline runs resolve RUN STEP",
    ),
    "not_started": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Change concurrency, throttle or debounce of the trigger if this run should have started.",
    ),
    "deadline_exceeded": ErrorCodeInfo(
        *_NO_ANSWER, advice="Raise the deadline of the workflow or the step, or make its agents faster."
    ),
    "join_failed": ErrorCodeInfo(
        *_NOT_SENT, advice="Fix the joined steps that did not complete, or require fewer of them (join)."
    ),
    "workflow_unknown": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Save the workflow (trunkline workflows apply FILE), or correct its name in the step.",
    ),
    "child_input_invalid": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Correct the step's input so that it matches the input schema of the workflow that the "
        "step runs.",
    ),
    "child_too_deep": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Nest fewer workflows. To see the parent runs",
        command="trunkline runs show RUN",
    ),
    "child_failed": ErrorCodeInfo(
        *_ANSWERED,
        advice="Fix the failure of the child run that the message names",
        command="trunkline runs show RUN",
    ),
    "block_failed": ErrorCodeInfo(
        *_ANSWERED,
        advice="Fix the failure of the step inside the block that the message names",
        command="trunkline runs show RUN",
    ),
    "max_rounds": ErrorCodeInfo(
        *_ANSWERED,
        advice="Raise max_rounds, let the step continue with its last round (on_max: continue), or correct the "
        "condition (until).",
    ),
    "child_cancelled": ErrorCodeInfo(
        *_ANSWERED,
        advice="The child run was cancelled. If the step is still needed, retry the run.",
    ),
    "reply_timed_out": ErrorCodeInfo(
        *_ANSWERED, advice="Reply earlier (trunkline inbox list), or raise the step's reply_timeout."
    ),
    "wait_timeout": ErrorCodeInfo(
        *_ANSWERED,
        advice="Send the event earlier, raise the step's timeout, or let the step continue without it "
        "(on_timeout: continue).",
    ),
    "ask_timeout": ErrorCodeInfo(
        *_ANSWERED,
        advice="Answer earlier (trunkline inbox list), raise the step's timeout, or let the step continue without an "
        "answer (on_timeout: continue).",
    ),
    "internal_error": ErrorCodeInfo(
        *_NOT_SENT, advice="This is a bug in Trunkline. Report it with the server's log."
    ),
}


def fix_for(code: str) -> str:
    return ERROR_CODES[code].fix


def complete_fix(
    error: StepError,
    *,
    run: str | None = None,
    step: str | None = None,
    agent: str | None = None,
    secret: str | None = None,
) -> None:
    """
    Adds the fix of its code to an error, and fills in the placeholders of the command.

    A more specific fix stays unchanged. If a name is unknown, the fix has no command.
    """
    known = ERROR_CODES[error.code]
    if error.fix not in ("", known.fix):
        return
    names = {"RUN": run, "STEP": step, "AGENT": agent, "SECRET": secret}
    error.fix_command = None if known.command is None else _filled(known.command, names)
    error.fix = _sentence(known.advice, error.fix_command)


def _filled(command: str, names: Mapping[str, str | None]) -> str | None:
    words = [names.get(word, word) for word in command.split()]
    known = [word for word in words if word is not None]
    return shlex.join(known) if len(known) == len(words) else None


def _sentence(advice: str, command: str | None) -> str:
    return f"{advice.rstrip('.')}." if command is None else f"{advice}: {command}."
