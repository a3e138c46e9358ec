"""An agent built with Google ADK, without a model: PORT FOLDER."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part
from script import listen, note, remembered, serve, wait_for_file

_USAGE = GenerateContentResponseUsageMetadata(
    prompt_token_count=3, candidates_token_count=4, total_token_count=7
)


class Scripted(BaseAgent):
    """The script of script.py as ADK's events; ADK has neither messages without a task nor chunks of its own."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event]:
        parts = (ctx.user_content.parts if ctx.user_content else None) or []
        text = "\n".join(part.text for part in parts if part.text)
        others = [part for part in parts if part.text is None]
        note("executions", {"messageId": None, "contextId": ctx.session.id, "text": text})
        answer = next((part.function_response for part in parts if part.function_response), None)
        if answer is not None:
            yield self._event(ctx, Part(text=f"Returned: {(answer.response or {}).get('result')}"))
            return
        word, _, rest = text.partition(" ")
        match word:
            case "work":
                await wait_for_file(rest)
                yield self._event(ctx, Part(text=f"Done: {rest}"))
            case "stream":
                yield self._event(ctx, Part(text="Once upon "), partial=True)
                await wait_for_file(rest)
                yield self._event(ctx, Part(text="a time"), partial=True)
                yield self._event(ctx, Part(text="Once upon a time"))
            case "fail":
                yield Event(
                    invocation_id=ctx.invocation_id, author=self.name, error_code="FAILED", error_message=rest
                )
            case "crash":
                raise RuntimeError(rest)
            case "ask":
                call = FunctionCall(id="question-1", name="ask_a_person", args={"question": rest})
                event = self._event(ctx, Part(text=rest), Part(function_call=call))
                event.long_running_tool_ids = {"question-1"}
                yield event
            case "remember" | "recall":
                yield self._event(ctx, Part(text=remembered(ctx.session.id, rest)))
            case _:
                yield self._event(
                    ctx, Part(text="Let me think", thought=True), Part(text=f"Heard: {text}"), *others
                )

    def _event(self, ctx: InvocationContext, *parts: Part, partial: bool = False) -> Event:
        return Event(
            invocation_id=ctx.invocation_id,
            author=self.name,
            content=Content(role="model", parts=list(parts)),
            partial=partial,
            usage_metadata=_USAGE,
        )


def main() -> None:
    listener, url = listen()
    agent = Scripted(name="scripted", description="Does what its message says.")
    serve(to_a2a(agent, host="127.0.0.1", port=listener.getsockname()[1]), listener, url)


if __name__ == "__main__":
    main()
