"""Tokens of answer links: what they say, and that no one else can make one."""

from __future__ import annotations

import base64

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.services.people.answer_links import AnswerLink, AnswerTokens, link_to

LINK = AnswerLink(RunId("018f0000-0000-7000-8000-000000000001"), "ok[3]", 2, 1, "ada ü", Instant(1))
TOKENS = AnswerTokens(b"key")


def test_a_token_says_what_it_was_made_of() -> None:
    assert TOKENS.link_of(TOKENS.token_of(LINK)) == LINK


def test_a_token_of_an_earlier_key_is_accepted_while_the_key_is_configured() -> None:
    token = TOKENS.token_of(LINK)
    assert AnswerTokens(b"new", b"key").link_of(token) == LINK
    assert AnswerTokens(b"new").link_of(token) is None


def test_an_altered_token_is_not_ours() -> None:
    other = msgspec.structs.replace(LINK, person="eve")
    content = base64.urlsafe_b64decode(TOKENS.token_of(LINK) + "==")
    forged = msgspec.json.encode(other) + content[-24:]
    assert TOKENS.link_of(base64.urlsafe_b64encode(forged).decode().rstrip("=")) is None
    for text in ("", "A", "é", "!" * 50, "A" * 5_000, TOKENS.token_of(LINK) + "A"):
        assert TOKENS.link_of(text) is None


def test_a_link_names_the_item_that_it_was_made_for() -> None:
    assert link_to(LINK.item, LINK.person, LINK.expires_at) == LINK
    for text in ("", "run", "run.step", "run.step.x.1", "run.step.1.x"):
        assert link_to(text, "ada", Instant(1)) is None
