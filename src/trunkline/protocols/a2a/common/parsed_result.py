"""What one result of an agent says, as far as all versions of A2A have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from msgspec import UNSET, Raw, UnsetType


class HasParts(Protocol):
    """Something that an agent says in parts: a message, an artifact."""

    @property
    def metadata(self) -> Raw | UnsetType: ...

    def has_parts(self) -> bool: ...

    def texts(self) -> list[str]:
        """Without the model's thinking."""
        ...

    def data_values(self) -> list[Raw]:
        """The data in it, without the model's thinking."""
        ...


class PartsMessage(HasParts, Protocol):
    @property
    def role(self) -> str | UnsetType: ...

    @property
    def parts(self) -> object:
        """`UNSET` where there are none at all."""
        ...

    def calls(self) -> list[Raw]:
        """The functions that the agent has called and waits for."""
        ...


Message_co = TypeVar("Message_co", bound=PartsMessage, covariant=True)


class ParsedResult(Protocol[Message_co]):
    @property
    def form(self) -> str: ...

    @property
    def state(self) -> str | None:
        """As the agent spells it; None when it says none."""
        ...

    @property
    def remote_task_id(self) -> str | None: ...

    @property
    def context_id(self) -> str | None: ...

    @property
    def artifacts(self) -> Sequence[HasParts]: ...

    # Artifacts, history and messages as they go into the output: nothing that the agent sent is missing in them.
    @property
    def artifacts_whole(self) -> object: ...

    @property
    def status_message(self) -> Message_co | None: ...

    @property
    def history(self) -> Sequence[Message_co]: ...

    @property
    def history_whole(self) -> object: ...

    @property
    def message(self) -> Message_co | None:
        """A direct Message, or one that came with a task."""
        ...

    @property
    def message_whole(self) -> object:
        """None where there is no direct Message."""
        ...

    @property
    def status_message_whole(self) -> object: ...

    @property
    def metadata(self) -> Raw | None: ...

    @property
    def reported_error(self) -> str | None:
        """An error that the agent put into its result."""
        ...

    @property
    def notes(self) -> list[str]: ...


def text_of(holder: HasParts | None) -> str:
    return "" if holder is None else "\n".join(holder.texts())


def not_null(raw: Raw | UnsetType) -> Raw | None:
    return None if raw is UNSET or bytes(raw) == b"null" else raw
