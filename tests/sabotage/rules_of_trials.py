"""Rules of agents that people look at: a trial ends what it has begun, a card tells no secret, sums are sums."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_TRIALS = "tests/scenarios/api/test_agent_trials.py"
_ACTIVITY = "tests/contract/test_store_activity.py"

TRIALS: Sequence[Rule] = (
    Rule(
        name="trial-ends-what-it-has-begun",
        breaks="An agent that asks something while it is tried out waits for an answer for ever.",
        file="bridge/calls/detached.py",
        old='session.detached == "trial"\n',
        new='session.detached == "shadow"\n',
        caught_by=(f"{_TRIALS}::test_an_agent_that_asks_is_told_that_nobody_answers[embedded]",),
    ),
    Rule(
        name="trial-is-short",
        breaks="Whoever tries an agent out that does not answer waits for as long as the agent's timeout is.",
        file="services/agents/inspection.py",
        old="longest=min(longest or own, LONGEST)",
        new="longest=min(own, LONGEST)",
        caught_by=(f"{_TRIALS}::test_an_agent_that_does_not_answer_is_left_alone_in_time[embedded]",),
    ),
    Rule(
        name="card-tells-no-secret",
        breaks="An agent's secret, repeated in its card, is shown to everybody who may see agents.",
        file="bridge/agents/inspection.py",
        old='parse(redaction.text(last.body.decode("utf-8", "replace")).encode())',
        new="parse(last.body)",
        caught_by=(f"{_TRIALS}::test_a_card_is_shown_as_the_agent_gives_it_without_its_secret[embedded]",),
    ),
    Rule(
        name="minutes-add-up",
        breaks="Of the calls of a minute only those of the last commit are counted.",
        file="stores/sqlite/tables/activity.py",
        old="calls = calls + excluded.calls",
        new="calls = excluded.calls",
        caught_by=(f"{_ACTIVITY}::test_a_minute_adds_up_over_transactions_and_bridges[sqlite]",),
    ),
    Rule(
        name="calls-begin-once",
        breaks="A call that an agent works on for an hour seems to have lasted as long as the last question.",
        file="stores/sqlite/tables/tasks.py",
        old="called_at = coalesce(called_at, ?)",
        new="called_at = ?",
        caught_by=(
            f"{_ACTIVITY}::test_a_call_that_goes_on_is_not_among_the_last_ones_and_keeps_when_it_began[sqlite]",
        ),
    ),
)
