"""The job that everybody does: three calls of one agent in sequence, each with the text of the answer before."""

from __future__ import annotations

AGENT = "BenchAgent"
WORKFLOW = "bench"
STEPS = 3
TEXT = "What does a durable workflow cost, and who pays for it? " * 4
RUN_INPUT = b'{"text":"' + TEXT.encode() + b'"}'

DEFINITION = f"""
name: {WORKFLOW}
steps:
  one:
    agent: {AGENT}
    input: {{text: "${{ input.text }}"}}
  two:
    agent: {AGENT}
    input: {{text: "${{ steps.one.output.text }}"}}
  three:
    agent: {AGENT}
    input: {{text: "${{ steps.two.output.text }}"}}
output: ${{ steps.three.output.text }}
"""

# A run that is over in the commit that started it: what is left is the price of the door.
NO_CALL_WORKFLOW = "door"
NO_CALL_DEFINITION = f"""
name: {NO_CALL_WORKFLOW}
steps:
  never:
    agent: {AGENT}
    when: "input.wanted == true"
output: done
"""
NO_CALL_INPUT = b'{"wanted":false}'


def sequence_of(steps: int) -> str:
    """A workflow of that many calls in sequence."""
    lines = [f"name: sequence_{steps}", "steps:"]
    for number in range(steps):
        source = "input.text" if number == 0 else f"steps.s{number - 1}.output.text"
        lines.append(f'  s{number}: {{agent: {AGENT}, input: {{text: "${{ {source} }}"}}}}')
    lines.append(f"output: ${{ steps.s{steps - 1}.output.text }}")
    return "\n".join(lines)


def loop_of(items: int, at_once: int) -> str:
    """A workflow of that many calls in a loop, so many of them at a time."""
    numbers = ", ".join(map(str, range(items)))
    loop = f"for_each: {{items: [{numbers}], limit: {at_once}}}"
    item = f"{{agent: {AGENT}, {loop}, input: {{text: '${{ input.text }} ${{ item }}'}}}}"
    return f"name: loop_{items}\nsteps:\n  each: {item}\noutput: ${{ steps.each.output.size() }}\n"


def request_body(task_id: str, text: str) -> dict[str, object]:
    """The JSON-RPC request that Trunkline sends for such a step, for those who call the agent by hand."""
    message = {
        "kind": "message",
        "role": "user",
        "messageId": f"msg-{task_id}",
        "parts": [{"kind": "text", "text": text}],
        "metadata": {"text": text},
    }
    return {"jsonrpc": "2.0", "id": task_id, "method": "message/send", "params": {"message": message}}
