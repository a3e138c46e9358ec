"""The published list of codes that `error.code` of a step or run can have, with what to do about each."""

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
    # The command that helps; RUN, STEP, AGENT and SECRET stand for what has failed.
    command: str | None = None

    @property
    def fix(self) -> str:
        """What to do about any failure with this code."""
        return _sentence(self.advice, self.command)


# `answered` and `sent`.
_NOT_SENT = (False, False)
_NO_ANSWER = (False, True)
_ANSWERED = (True, True)

ERROR_CODES: dict[str, ErrorCodeInfo] = {
    "agent_unknown": ErrorCodeInfo(*_NOT_SENT, advice="Register the agent: trunkline agents add NAME URL."),
    "agent_dns_failed": ErrorCodeInfo(*_NOT_SENT, advice="Check the host name in the agent's url."),
    "agent_unreachable": ErrorCodeInfo(*_NOT_SENT, advice="Start the agent, or correct its url."),
    "agent_tls_failed": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Check the agent's certificate (its name, its dates, who signed it), and ours if it wants one; "
        "where it speaks no TLS at all, correct its url to http://.",
    ),
    "agent_address_forbidden": ErrorCodeInfo(
        *_NOT_SENT, advice="Add the network or host name to TRUNKLINE_ALLOWED_NETWORKS if it is meant."
    ),
    "blob_missing": ErrorCodeInfo(
        *_NOT_SENT, advice="Run the step again that made the file", command="trunkline runs retry RUN"
    ),
    "out_of_resources": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Raise the limit of open files where the bridge runs (LimitNOFILE=, ulimit -n), or give it more memory.",
    ),
    "agent_transport_unavailable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Install or configure what the message names where the bridge runs, or change the agent's transport.",
    ),
    "agent_url_invalid": ErrorCodeInfo(*_NOT_SENT, advice="Correct the agent's url."),
    "agent_program_unknown": ErrorCodeInfo(
        *_NOT_SENT, advice="Name the program in TRUNKLINE_STDIO_COMMANDS, or correct the agent's url."
    ),
    "agent_secret_unreadable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Set the agent's auth_config again; the key that encrypted it is not the present one.",
    ),
    "secret_missing": ErrorCodeInfo(
        *_NOT_SENT, advice="Set it, then run the step again", command="trunkline secrets set SECRET"
    ),
    "secret_unreadable": ErrorCodeInfo(
        *_NOT_SENT,
        advice="The key that encrypted it is not the present one; set it again",
        command="trunkline secrets set SECRET",
    ),
    "agent_token_refused": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Check token_url, client_id, client_secret and scope in the agent's auth_config.",
    ),
    "agent_token_unavailable": ErrorCodeInfo(
        *_NOT_SENT, advice="Check that the token_url of the agent's auth_config can be reached."
    ),
    "agent_timeout": ErrorCodeInfo(
        *_NO_ANSWER, advice="Raise the step's timeout or the agent's timeout_ms, or make the agent faster."
    ),
    "agent_connection_lost": ErrorCodeInfo(
        *_NO_ANSWER, advice="Look at the agent's log: it closed the connection."
    ),
    "agent_batch_answer_missing": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Let the agent answer every request of a batch, or take batch out of protocol_config.",
    ),
    "agent_task_lost": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Look at the agent's log: it has lost its tasks, perhaps in a restart. Let it keep them in a store.",
    ),
    "agent_unavailable": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Look at the agent's log: it is stopping, or what it needs is away. The same message may be sent again.",
    ),
    "agent_redirected": ErrorCodeInfo(*_ANSWERED, advice="Register the address that the agent redirects to."),
    "agent_http_error": ErrorCodeInfo(
        *_ANSWERED, advice="Look at the wire", command="trunkline runs wire RUN STEP"
    ),
    "agent_answer_too_large": ErrorCodeInfo(
        *_ANSWERED, advice="Let the agent answer with less, or raise TRUNKLINE_MAX_ANSWER_BYTES."
    ),
    "agent_answer_compressed": ErrorCodeInfo(
        *_ANSWERED, advice="Switch compression off in the agent: Trunkline asks for identity."
    ),
    "agent_answer_malformed": ErrorCodeInfo(
        *_ANSWERED,
        advice="Compare the agent's answer with the format",
        command="trunkline runs wire RUN STEP",
    ),
    "agent_response_id_mismatch": ErrorCodeInfo(
        *_ANSWERED, advice="The agent must echo the request's id unchanged."
    ),
    "agent_jsonrpc_error": ErrorCodeInfo(*_ANSWERED, advice="The agent refused; its message says why."),
    "agent_reported_error": ErrorCodeInfo(*_ANSWERED, advice="The agent failed; its message says why."),
    "agent_task_failed": ErrorCodeInfo(
        *_ANSWERED, advice="The agent's task ended without success; see its words."
    ),
    "agent_task_unfinished": ErrorCodeInfo(
        *_ANSWERED,
        advice="Raise the step's timeout if the agent needs more time; "
        "one that works on must tell how its task stands (tasks/get)",
        command="trunkline agents check AGENT --active",
    ),
    "agent_protocol_unclear": ErrorCodeInfo(
        *_NOT_SENT, advice="Pin the agent's protocol, or make its agent card reachable."
    ),
    "request_not_encodable": ErrorCodeInfo(*_NOT_SENT, advice="Correct the step's input."),
    "expression_failed": ErrorCodeInfo(
        *_NOT_SENT, advice="Correct the expression in the workflow and save it again."
    ),
    "output_failed": ErrorCodeInfo(
        *_NOT_SENT, advice="Correct the workflow's output expression and save it again."
    ),
    "outcome_unknown": ErrorCodeInfo(
        *_NO_ANSWER,
        advice="Find out whether the agent did the work, then",
        command="trunkline runs resolve RUN STEP",
    ),
    "deadline_exceeded": ErrorCodeInfo(
        *_NO_ANSWER, advice="Raise the deadline of the workflow or of the step, or make it faster."
    ),
    "join_failed": ErrorCodeInfo(
        *_NOT_SENT, advice="See why the joined steps did not complete, or ask for fewer of them (join)."
    ),
    "workflow_unknown": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Save the workflow (trunkline workflows apply FILE), or correct its name in the step.",
    ),
    "child_input_invalid": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Correct the step's input: it has to fit the input schema of the workflow it begins.",
    ),
    "child_too_deep": ErrorCodeInfo(
        *_NOT_SENT,
        advice="Let fewer workflows begin one another, and see its parents",
        command="trunkline runs show RUN",
    ),
    "child_failed": ErrorCodeInfo(
        *_ANSWERED, advice="See why in the run that the message names", command="trunkline runs show RUN"
    ),
    "child_cancelled": ErrorCodeInfo(
        *_ANSWERED,
        advice="Somebody has cancelled the run that the step had begun; run the step again if need be.",
    ),
    "reply_timed_out": ErrorCodeInfo(
        *_ANSWERED, advice="Answer sooner (trunkline inbox list), or raise the step's reply_timeout."
    ),
    "internal_error": ErrorCodeInfo(
        *_NOT_SENT, advice="Report this with the server's log: it is a bug in Trunkline."
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
    Gives the error the fix of its code, with the names of what has failed in its command.

    A fix of its own stays as it is. Where a name is not known, the fix has no command.
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
