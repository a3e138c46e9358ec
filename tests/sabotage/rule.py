"""One safety rule, how to take it away, and the tests that notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rule:
    name: str
    # What happens without it, to an operator's eye.
    breaks: str
    # Under src/trunkline.
    file: str
    # Occurs once in the file.
    old: str
    new: str
    # Each of them fails without the rule; with its parameters where only some of them do.
    caught_by: tuple[str, ...]
    # What each of the failures says: an assertion's words, not those of a program that does not run any more.
    shows: str = "assert"

    @property
    def path(self) -> str:
        return f"src/trunkline/{self.file}"

    def broken(self, source: str) -> str:
        """The file without the rule."""
        if source.count(self.old) != 1:
            raise LookupError(
                f"{self.name}: {self.path} has its text {source.count(self.old)} times, not once."
            )
        return source.replace(self.old, self.new)
