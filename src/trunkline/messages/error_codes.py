"""The published list of codes that `error.code` of a step or run can have, with what to do about each."""

from __future__ import annotations

from typing import NamedTuple


class ErrorCodeInfo(NamedTuple):
    # False: the request may have been received, but no answer came; the same message may be sent again.
    answered: bool
    # False: the request certainly never reached the agent.
    sent: bool
    fix: str


_NOT_SENT = {"answered": False, "sent": False}
_NO_ANSWER = {"answered": False, "sent": True}
_ANSWERED = {"answered": True, "sent": True}

ERROR_CODES: dict[str, ErrorCodeInfo] = {
    "agent_unknown": ErrorCodeInfo(**_NOT_SENT, fix="Register the agent: trunkline agents add NAME URL."),
    "agent_dns_failed": ErrorCodeInfo(**_NOT_SENT, fix="Check the host name in the agent's url."),
    "agent_unreachable": ErrorCodeInfo(**_NOT_SENT, fix="Start the agent, or correct its url."),
    "agent_tls_failed": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Check the agent's certificate (its name, its dates, who signed it), and ours if it wants one; "
        "where it speaks no TLS at all, correct its url to http://.",
    ),
    "agent_address_forbidden": ErrorCodeInfo(
        **_NOT_SENT, fix="Add the network or host name to TRUNKLINE_ALLOWED_NETWORKS if it is meant."
    ),
    "blob_missing": ErrorCodeInfo(
        **_NOT_SENT, fix="Run the step again that made the file: trunkline runs retry RUN."
    ),
    "agent_transport_unavailable": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Install or configure what the message names where the bridge runs, or change the agent's transport.",
    ),
    "agent_url_invalid": ErrorCodeInfo(**_NOT_SENT, fix="Correct the agent's url."),
    "agent_program_unknown": ErrorCodeInfo(
        **_NOT_SENT, fix="Name the program in TRUNKLINE_STDIO_COMMANDS, or correct the agent's url."
    ),
    "agent_secret_unreadable": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Set the agent's auth_config again; the key that encrypted it is not the present one.",
    ),
    "secret_missing": ErrorCodeInfo(
        **_NOT_SENT, fix="Set it, then run the step again: trunkline secrets set NAME."
    ),
    "secret_unreadable": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Set it again (trunkline secrets set NAME); the key that encrypted it is not the present one.",
    ),
    "agent_token_refused": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Check token_url, client_id, client_secret and scope in the agent's auth_config.",
    ),
    "agent_token_unavailable": ErrorCodeInfo(
        **_NOT_SENT, fix="Check that the token_url of the agent's auth_config can be reached."
    ),
    "agent_timeout": ErrorCodeInfo(
        **_NO_ANSWER, fix="Raise the step's timeout or the agent's timeout_ms, or make the agent faster."
    ),
    "agent_connection_lost": ErrorCodeInfo(
        **_NO_ANSWER, fix="Look at the agent's log: it closed the connection."
    ),
    "agent_batch_answer_missing": ErrorCodeInfo(
        **_NO_ANSWER,
        fix="Let the agent answer every request of a batch, or take batch out of protocol_config.",
    ),
    "agent_task_lost": ErrorCodeInfo(
        **_NO_ANSWER,
        fix="Look at the agent's log: it has lost its tasks, perhaps in a restart. Let it keep them in a store.",
    ),
    "agent_unavailable": ErrorCodeInfo(
        **_NO_ANSWER,
        fix="Look at the agent's log: it is stopping, or what it needs is away. The same message may be sent again.",
    ),
    "agent_redirected": ErrorCodeInfo(**_ANSWERED, fix="Register the address that the agent redirects to."),
    "agent_http_error": ErrorCodeInfo(**_ANSWERED, fix="Look at the wire: trunkline runs wire RUN STEP."),
    "agent_answer_too_large": ErrorCodeInfo(
        **_ANSWERED, fix="Let the agent answer with less, or raise TRUNKLINE_MAX_ANSWER_BYTES."
    ),
    "agent_answer_compressed": ErrorCodeInfo(
        **_ANSWERED, fix="Switch compression off in the agent: Trunkline asks for identity."
    ),
    "agent_answer_malformed": ErrorCodeInfo(
        **_ANSWERED, fix="Compare the agent's answer with the format: trunkline runs wire RUN STEP."
    ),
    "agent_response_id_mismatch": ErrorCodeInfo(
        **_ANSWERED, fix="The agent must echo the request's id unchanged."
    ),
    "agent_jsonrpc_error": ErrorCodeInfo(**_ANSWERED, fix="The agent refused; its message says why."),
    "agent_reported_error": ErrorCodeInfo(**_ANSWERED, fix="The agent failed; its message says why."),
    "agent_task_failed": ErrorCodeInfo(
        **_ANSWERED, fix="The agent's task ended without success; see its words."
    ),
    "agent_task_unfinished": ErrorCodeInfo(
        **_ANSWERED,
        fix="Raise the step's timeout if the agent needs more time; "
        "one that works on must tell how its task stands (tasks/get): see trunkline agents check NAME --active.",
    ),
    "agent_protocol_unclear": ErrorCodeInfo(
        **_NOT_SENT, fix="Pin the agent's protocol, or make its agent card reachable."
    ),
    "request_not_encodable": ErrorCodeInfo(**_NOT_SENT, fix="Correct the step's input."),
    "expression_failed": ErrorCodeInfo(
        **_NOT_SENT, fix="Correct the expression in the workflow and save it again."
    ),
    "output_failed": ErrorCodeInfo(
        **_NOT_SENT, fix="Correct the workflow's output expression and save it again."
    ),
    "outcome_unknown": ErrorCodeInfo(
        **_NO_ANSWER, fix="Find out whether the agent did the work, then: trunkline runs resolve RUN STEP."
    ),
    "deadline_exceeded": ErrorCodeInfo(
        **_NO_ANSWER, fix="Raise the deadline of the workflow or of the step, or make it faster."
    ),
    "join_failed": ErrorCodeInfo(
        **_NOT_SENT, fix="See why the joined steps did not complete, or ask for fewer of them (join)."
    ),
    "workflow_unknown": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Save the workflow (trunkline workflows apply FILE), or correct its name in the step.",
    ),
    "child_input_invalid": ErrorCodeInfo(
        **_NOT_SENT, fix="Correct the step's input: it has to fit the input schema of the workflow it begins."
    ),
    "child_too_deep": ErrorCodeInfo(
        **_NOT_SENT,
        fix="Let fewer workflows begin one another: see the parents with trunkline runs show RUN.",
    ),
    "child_failed": ErrorCodeInfo(
        **_ANSWERED, fix="See why in the run that the message names: trunkline runs show RUN."
    ),
    "child_cancelled": ErrorCodeInfo(
        **_ANSWERED,
        fix="Somebody has cancelled the run that the step had begun; run the step again if need be.",
    ),
    "reply_timed_out": ErrorCodeInfo(
        **_ANSWERED, fix="Answer sooner (trunkline inbox list), or raise the step's reply_timeout."
    ),
    "internal_error": ErrorCodeInfo(
        **_NOT_SENT, fix="Report this with the server's log: it is a bug in Trunkline."
    ),
}


def fix_for(code: str) -> str:
    return ERROR_CODES[code].fix
