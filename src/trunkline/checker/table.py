"""
Every check there is: what it asks, why, how to mend what it finds, and where that is explained.

One table for the program and for docs/reference/checks.md, which a test holds to it. Ids are for good: scripts, JUnit
files and pages name them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

GUIDE = "docs/guides/migrating-agents.md"
REFERENCE = "docs/reference/checks.md"

Group = Literal[
    "Transport", "Agent card", "Request handling", "Response format", "Error handling", "Input", "Tasks"
]

# The headings of the eight common issues in the guide.
ISSUES = {
    1: "issue-1-input-extraction-fails",
    2: "issue-2-response-missing-required-fields",
    3: "issue-3-empty-artifacts-array",
    4: "issue-4-status-state-not-recognized",
    5: "issue-5-error-responses-not-formatted-correctly",
    6: "issue-6-history-array-format-issues",
    7: "issue-7-content-type-header-issues",
    8: "issue-8-id-mismatch",
}


class Check(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    group: Group
    title: str
    expected: str
    why: str
    fix: str
    # Whether it needs messages that an agent takes for work: --active.
    active: bool = False
    # The common issue that it finds, by its number.
    issue: int | None = None

    @property
    def guide(self) -> str:
        return f"{REFERENCE}#{self.id}" if self.issue is None else f"{GUIDE}#{ISSUES[self.issue]}"


_TABLE = (
    # --- Transport
    Check(
        id="reachable",
        group="Transport",
        title="The agent can be reached",
        expected="A connection to the agent's address.",
        why="Nothing else can be asked of an agent that is not there.",
        fix="Start the agent, or correct its url; from where Trunkline runs the host name must lead to it.",
    ),
    Check(
        id="allowed",
        group="Transport",
        title="The agent lets us in",
        expected="No HTTP 401 or 403.",
        why="An agent that refuses the caller refuses every task.",
        fix="Set the agent's auth_type and auth_config (agents add --auth-type), or let it accept them.",
    ),
    Check(
        id="address",
        group="Transport",
        title="The address takes POST requests",
        expected="No redirect, no 404, 405 or 501 for a POST to the agent's address.",
        why="Trunkline sends to exactly the registered address and follows no redirect.",
        fix="Register the whole path at which the agent listens, with its last slash if it has one.",
    ),
    Check(
        id="protocol-clear",
        group="Transport",
        title="What the agent speaks is clear",
        expected="A card that can be read, or a clear sign that there is none.",
        why="With the protocol auto the dialect is chosen by the agent's card.",
        fix="Make the card readable, or name the dialect: --protocol, or protocol in the registry.",
    ),
    Check(
        id="speaks-protocol",
        group="Transport",
        title="The agent speaks the protocol",
        expected="At least one answer in the form of the dialect.",
        why="An agent that was moved, or was not moved yet, answers in another protocol's form.",
        fix="Check with the protocol that the agent speaks (--protocol), or move the agent to this one.",
    ),
    Check(
        id="answers-in-time",
        group="Transport",
        title="Every request is answered in time",
        expected="An answer within the time limit of the check.",
        why="A request that is never answered holds a step until its timeout, and then it is sent again.",
        fix="Let the agent refuse at once what it cannot take; look at its log for what it waits for.",
    ),
    Check(
        id="answers-whole",
        group="Transport",
        title="Every request gets a whole HTTP answer",
        expected="An HTTP response that ends as it should; the connection is not closed before.",
        why="A handler that crashes on bad params takes the connection with it, and nobody learns why.",
        fix="Check the type of everything in a request before using it, and answer -32602 where it is wrong.",
    ),
    Check(
        id="answer-size",
        group="Transport",
        title="Answers are of a sensible size",
        expected="No answer larger than the limit of the check.",
        why="An answer over TRUNKLINE_MAX_ANSWER_BYTES fails the step.",
        fix="Answer with less, or with a link to what is large.",
    ),
    Check(
        id="answer-plain",
        group="Transport",
        title="Answers are not compressed",
        expected="No Content-Encoding: the request asks for identity.",
        why="Trunkline asks for plain bodies, and cannot read others.",
        fix="Switch compression off in the agent or in the proxy before it, or let it honour Accept-Encoding.",
    ),
    Check(
        id="accepts-json",
        group="Transport",
        title="Content-Type application/json is accepted",
        expected="A well-formed request is read, whatever is then said of it.",
        why="Agent receives request but can't parse it: it wants another Content-Type, or reads another kind of body.",
        fix="Parse the body as JSON when Content-Type is application/json, which is what Trunkline sends.",
        issue=7,
    ),
    Check(
        id="accepts-charset",
        group="Transport",
        title="A charset in the Content-Type is accepted",
        expected="application/json; charset=utf-8 is read like application/json.",
        why="Many HTTP clients add the charset; a comparison with the bare name locks them out.",
        fix="Compare the media type alone: what stands before the first semicolon.",
        issue=7,
    ),
    Check(
        id="answers-json",
        group="Transport",
        title="Answers say that they are JSON",
        expected="Content-Type: application/json with every JSON answer.",
        why="Proxies and other clients decide by it what to do with the body.",
        fix="Set the Content-Type of the answer; frameworks do when they are given an object.",
        issue=7,
    ),
    Check(
        id="survives-get",
        group="Transport",
        title="A GET does no harm",
        expected="Any answer below 500, or 501.",
        why="Health checks, browsers and scanners send GETs to every address.",
        fix="Answer 405 to methods other than POST.",
    ),
    # --- Agent card
    Check(
        id="card-present",
        group="Agent card",
        title="The agent has a card",
        expected="A card at /.well-known/agent-card.json.",
        why="Clients of A2A learn from the card where to send and what the agent can do.",
        fix="Serve the card below the agent's address or at the root of its host.",
    ),
    Check(
        id="card-readable",
        group="Agent card",
        title="The card can be read",
        expected="JSON with the fields of a card, if there is a card at all.",
        why="A card that cannot be read leaves open what the agent speaks: with auto no task is sent.",
        fix="Correct the card's JSON, or answer 404 where there is none.",
    ),
    Check(
        id="card-complete",
        group="Agent card",
        title="The card has what A2A asks for",
        expected="name, description, version, capabilities, skills, defaultInputModes and defaultOutputModes.",
        why="Clients that read cards strictly refuse one that lacks a field.",
        fix="Add the fields that are named.",
    ),
    Check(
        id="card-protocol",
        group="Agent card",
        title="The card offers what was checked",
        expected="An interface of the dialect that the agent is checked in.",
        why="With auto the card decides; one that is wrong about it costs a refused call.",
        fix="Correct protocolVersion and the transport (or protocolBinding) of the card's interfaces.",
    ),
    Check(
        id="card-endpoint",
        group="Agent card",
        title="The card names an address of the agent's own",
        expected="Every interface of the dialect has the origin under which the agent is reached.",
        why="Credentials are not sent to another origin; localhost in a card is the usual mistake.",
        fix="Tell the agent under which address it is reached, or set the agent's allow_card_origin.",
    ),
    # --- Request handling
    Check(
        id="version-checked",
        group="Request handling",
        title="The field jsonrpc is checked",
        expected="Error -32600 for a request whose jsonrpc is not '2.0', or that has none.",
        why="Invalid `jsonrpc` version returns error code -32600.",
        fix="Before anything else: if request.get('jsonrpc') != '2.0', answer error -32600.",
    ),
    Check(
        id="method-checked",
        group="Request handling",
        title="The method is checked",
        expected="Error -32601 for a method that the agent does not have.",
        why="Invalid `method` returns error code -32601; by it a caller knows that no work was taken.",
        fix="Compare the method with those that the agent has, and answer error -32601 for any other.",
    ),
    Check(
        id="method-required",
        group="Request handling",
        title="A request without a method is refused",
        expected="Error -32600 (or -32601).",
        why="Without a method it is no request.",
        fix="Answer error -32600 when there is no method.",
    ),
    Check(
        id="params-checked",
        group="Request handling",
        title="The params are checked",
        expected="Error -32602 for params without a message, or with a message or parts of the wrong type.",
        why="Invalid `params` returns error code -32602; an agent that does not look crashes, or works on nothing.",
        fix="Check that params.message.parts is a list with at least one part before using it; else error -32602.",
    ),
    Check(
        id="parse-error",
        group="Request handling",
        title="A body that is not JSON is refused",
        expected="Error -32700, with the id null.",
        why="-32700 is the code for invalid JSON; a framework's own page of HTML tells a caller nothing.",
        fix="Parse the body yourself, and answer error -32700 with id null when that fails.",
    ),
    Check(
        id="object-required",
        group="Request handling",
        title="JSON that is no request is refused",
        expected="Error -32600 for a text, a number or an empty batch.",
        why="Code that reads fields of what is no object crashes.",
        fix="Answer error -32600 when the body is not an object (or a batch, where the agent takes batches).",
    ),
    Check(
        id="batch-answered",
        group="Request handling",
        title="A batch is answered",
        expected="A list with one answer per request, or one error.",
        why="JSON-RPC has batches; an agent that takes none says so.",
        fix="Answer each request of the list, or one error -32600 for all.",
    ),
    Check(
        id="numeric-id",
        group="Request handling",
        title="A numeric id is taken and echoed",
        expected="The same number in the answer.",
        why="JSON-RPC allows numbers; Trunkline sends strings, other callers do not.",
        fix="Keep the id as it came, whatever its type, and echo it.",
    ),
    # --- Error handling
    Check(
        id="error-object",
        group="Error handling",
        title="Errors use 'error' instead of 'result'",
        expected="An answer that reports a failure has 'error' and no 'result'.",
        why="Errors not properly reported to workflow system: a failure in 'result' looks like an output.",
        fix="Answer {'jsonrpc': '2.0', 'id': id, 'error': {'code': -32603, 'message': '…'}} for failures.",
        issue=5,
    ),
    Check(
        id="error-code-and-message",
        group="Error handling",
        title="The error object has a code and a message",
        expected="error.code is a whole number, error.message a text.",
        why="The code decides about retries, the message is what an operator reads.",
        fix="Make error an object with an integer 'code' and a string 'message'.",
        issue=5,
    ),
    Check(
        id="error-message",
        group="Error handling",
        title="Errors say what is wrong",
        expected="error.message is not empty.",
        why="All errors include descriptive messages: an empty one sends the operator to the agent's log.",
        fix="Say in error.message what is wrong with the request, or what failed.",
    ),
    Check(
        id="error-jsonrpc",
        group="Error handling",
        title="Errors have jsonrpc '2.0'",
        expected="'jsonrpc': '2.0' in every error.",
        why="malformed JSON-RPC response: without it the answer is not one of JSON-RPC.",
        fix="Put 'jsonrpc': '2.0' into every answer, errors too.",
        issue=2,
    ),
    Check(
        id="error-id",
        group="Error handling",
        title="Errors echo the request's id",
        expected="The id of the request, unchanged: also one that looks like a number, is long, or not ASCII.",
        why="Response ID mismatch: an error with another id belongs to nobody.",
        fix="Read the id before anything can fail, keep it as it came, and put it into every answer.",
        issue=8,
    ),
    Check(
        id="error-no-internals",
        group="Error handling",
        title="Errors do not show the agent's insides",
        expected="No stack trace in an answer.",
        why="Paths, versions and values in a trace are for the agent's own log.",
        fix="Log the exception, and answer with a sentence.",
    ),
    Check(
        id="internal-error",
        group="Error handling",
        title="What goes wrong inside is answered as an error",
        expected="A result, or an error with a code of JSON-RPC (-32603 for what failed inside), for odd input.",
        why="Internal errors return error code -32603; a 500 without it says nothing about the task.",
        fix="Wrap the handler: an exception becomes error -32603 with a message.",
        active=True,
    ),
    # --- Response format
    Check(
        id="result-status",
        group="Response format",
        title="A result comes with HTTP 200",
        expected="HTTP 200 for a message that was taken.",
        why="The test script of the migration guide asks for it; other statuses make clients guess.",
        fix="Answer 200 with every result.",
        active=True,
    ),
    Check(
        id="result-present",
        group="Response format",
        title="An answer has either result or error",
        expected="A JSON object with 'result' or with 'error', and not with both.",
        why="malformed JSON-RPC response: Response missing both 'result' and 'error'.",
        fix="Put what you have into 'result': {'status': …, 'artifacts': […], 'history': […]}.",
        active=True,
        issue=2,
    ),
    Check(
        id="result-jsonrpc",
        group="Response format",
        title="Results have jsonrpc '2.0'",
        expected="'jsonrpc': '2.0' in every result.",
        why="malformed JSON-RPC response: Response missing 'jsonrpc' field.",
        fix="Put 'jsonrpc': '2.0' into every answer.",
        active=True,
        issue=2,
    ),
    Check(
        id="result-id-present",
        group="Response format",
        title="Results have an id",
        expected="'id' in every result.",
        why="malformed JSON-RPC response: without an id an answer belongs to no request.",
        fix="Put the request's id into every answer.",
        active=True,
        issue=2,
    ),
    Check(
        id="result-id",
        group="Response format",
        title="Results echo the request's id",
        expected="The id of the request, unchanged: also one that looks like a number, is long, or not ASCII.",
        why="Response ID mismatch: the answer is refused, though the work was done.",
        fix="Use the id of the request: response['id'] = request['id'], as it came.",
        active=True,
        issue=8,
    ),
    Check(
        id="result-task",
        group="Response format",
        title="The result is a task or a message",
        expected="A task with id, context and status.state, or a message of the agent with parts.",
        why="A2A has these two; what is neither is guessed at.",
        fix="Answer with a task or a message as A2A spells them in this version.",
        active=True,
    ),
    Check(
        id="result-state",
        group="Response format",
        title="The state is one that is recognised",
        expected="result.status.state is 'completed' for work that is done.",
        why="Task marked as failed even though agent succeeded: success, done and ok are no states.",
        fix="Use the exact string 'completed' in result.status.state (TASK_STATE_COMPLETED in A2A 1.0).",
        active=True,
        issue=4,
    ),
    Check(
        id="result-artifacts",
        group="Response format",
        title="The output is in artifacts with parts",
        expected="At least one artifact, each with a list of parts that is not empty.",
        why="Bridge extracts no output from response: the artifacts are empty, or miss their parts.",
        fix="Answer with 'artifacts': [{'parts': [{'kind': 'text', 'text': '…'}]}].",
        active=True,
        issue=3,
    ),
    Check(
        id="result-parts",
        group="Response format",
        title="Every part has its kind and its content",
        expected="kind and text (or data, or file) in each part.",
        why="Only parts whose kind is known are read; text without kind is lost on strict clients.",
        fix="Write each part as {'kind': 'text', 'text': '…'} ({'text': '…'} in A2A 1.0).",
        active=True,
        issue=3,
    ),
    Check(
        id="result-history",
        group="Response format",
        title="The history has the user's and the agent's message",
        expected="history is a list whose items have role and parts, with one of the user and one of the agent.",
        why="Bridge can't extract output from history: items miss role or parts.",
        fix="Answer with 'history': [{'role': 'user', 'parts': […]}, {'role': 'agent', 'parts': […]}].",
        active=True,
        issue=6,
    ),
    Check(
        id="works-in-workflow",
        group="Response format",
        title="A step of a workflow can use the agent",
        expected="The request that a step sends is answered with an output.",
        why="The last word is the bridge's own reading of the answer.",
        fix="The message says what the bridge has found.",
        active=True,
    ),
    # --- Input
    Check(
        id="input-extracted",
        group="Input",
        title="The input is found in params.message.parts",
        expected="A message with JSON or with text in its first part is answered with a result that shows it was read.",
        why="Agent receives request but can't parse input data: it looks for it somewhere else.",
        fix="Take the text of params.message.parts[0], and parse it as JSON if that is possible.",
        active=True,
        issue=1,
    ),
    Check(
        id="input-json",
        group="Input",
        title="JSON input is handled",
        expected="A result for a part whose text is a JSON object.",
        why="Inputs of a step are objects: they travel as JSON in the text.",
        fix="Try json.loads(text) and take the object.",
        active=True,
        issue=1,
    ),
    Check(
        id="input-text",
        group="Input",
        title="Plain text input is handled",
        expected="A result for a part whose text is a sentence.",
        why="An input with a text or a query travels as that text alone.",
        fix="When the text is not JSON, take it as it is: {'text': text}.",
        active=True,
        issue=1,
    ),
    Check(
        id="input-unicode",
        group="Input",
        title="Letters of all scripts are handled",
        expected="A result for a text with umlauts, Chinese and an emoji.",
        why="People write so.",
        fix="Read and write bodies as UTF-8.",
        active=True,
    ),
    Check(
        id="repeated-message",
        group="Input",
        title="The same message twice is the same work",
        expected="A message with a messageId that was seen before gets the same task, or the same answer.",
        why="When an answer is lost, the same message is sent again: what is not recognised is done twice.",
        fix="Keep the answers by messageId for a while, and give the kept one again.",
        active=True,
    ),
    # --- Tasks
    Check(
        id="unknown-task",
        group="Tasks",
        title="A task that does not exist is not found",
        expected="Error -32001 (404 over HTTP+JSON) for a task id that nobody has given.",
        why="By it the bridge knows that a task was lost, and does not wait for it.",
        fix="Answer error -32001 'Task not found' (or -32601 where the agent keeps no tasks).",
    ),
    # --- Simple A2A
    Check(
        id="simple-refuses",
        group="Request handling",
        title="A request that is none is refused",
        expected="An HTTP status from 400 on, or status 'error', for a body without task_id or input.",
        why="Work on nothing costs as much as work on something.",
        fix="Check that task_id and input are there, and answer status 'error' with 400 when they are not.",
    ),
    Check(
        id="simple-error-form",
        group="Error handling",
        title="A refusal is JSON",
        expected="A JSON object with an error for every refusal, not a page of HTML.",
        why="What the agent says stands in the step's error; a page of HTML says nothing.",
        fix="Answer {'task_id': …, 'status': 'error', 'output': null, 'error': '…'}.",
    ),
    Check(
        id="simple-answer",
        group="Response format",
        title="An answer is an object with a status",
        expected="A JSON object whose status is 'success' or 'error'.",
        why="Response missing 'status' field: nothing else says whether the work was done.",
        fix="Answer {'task_id': …, 'status': 'success', 'output': {…}, 'error': null}.",
        active=True,
    ),
    Check(
        id="simple-success",
        group="Input",
        title="A task is done",
        expected="status 'success' with HTTP 200 for a task with an object as its input.",
        why="A check's task is like any other.",
        fix="Read the input from the field input of the request.",
        active=True,
        issue=1,
    ),
    Check(
        id="simple-task-id",
        group="Response format",
        title="An answer has the task's id",
        expected="task_id as it was in the request.",
        why="Response task_id mismatch: an answer to another task is not to be trusted.",
        fix="Echo the task_id of the request, as it came.",
        active=True,
        issue=8,
    ),
    Check(
        id="simple-output",
        group="Response format",
        title="A success has an output",
        expected="output is there and not null, and error is null or not there.",
        why="The next step works on it.",
        fix="Put the result into output, and error: null beside it.",
        active=True,
        issue=3,
    ),
)

CHECKS: dict[str, Check] = {check.id: check for check in _TABLE}
