"""What agents had to do lately, and what they say of themselves, as the API shows it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from trunkline.api.schemas.common import Shape, Time


class ActivityMinute(Shape):
    """The attempts on an agent that have ended within a minute."""

    at: Time = Field(description="When the minute began.")
    calls: int
    failures: int
    mean_ms: float = Field(description="From the beginning of a call to its end.")
    longest_ms: int


class AgentCall(Shape):
    """An attempt of a step on an agent, and how it has ended."""

    run: str
    step: str
    attempt: int
    started_at: Time | None = Field(description="null: it was broken off before it had begun.")
    ended_at: Time
    duration_ms: float | None
    outcome: Literal["success", "error", "interrupted", "cancelled", "unknown"] = Field(
        description="`interrupted`: the agent asks something; `unknown`: nobody knows what it has done."
    )
    error_code: str | None


class AgentActivity(Shape):
    """What an agent had to do lately, over all bridges."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    begin: Time = Field(alias="from")
    end: Time = Field(alias="to", description="The end of the minute that is under way.")
    minutes: list[ActivityMinute] = Field(description="Oldest first; minutes without a call are left out.")
    last_call: AgentCall | None = Field(description="The last that has ended, however long ago.")


class LastCheck(Shape):
    """What the last check of an agent has found, in short."""

    id: str
    at: Time
    grade: str
    passed: bool


class AgentCardView(Shape):
    """An agent's card as it is now."""

    asked_at: Time
    url: str | None = Field(description="Where it was looked for last.")
    detail: str = Field(description="What the agent has answered, or why it was not asked.")
    card: JsonValue = Field(description="The whole card, redacted; null: there is none.")
    changed: bool | None = Field(description="Whether it is another than the one that the dialect is from.")
