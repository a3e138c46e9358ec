"""Agents, their limits, their history and their activity."""

from __future__ import annotations

from typing import cast

import msgspec

from trunkline.agents import NO_OPTIONS, Agent, AgentOptions, Dialect
from trunkline.agents.call_limits.breaker import Breaker
from trunkline.agents.call_limits.limit_state import AgentLimitState
from trunkline.agents.call_limits.token_bucket import TokenBucket
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.publish_options import PublishOptions
from trunkline.retry_policy import RetryPolicy
from trunkline.stores.port.agents.activity import AgentMinute, EndedCall
from trunkline.stores.port.agents.agent_events import AgentEvent, CheckRecord, ComparisonRecord, Grade
from trunkline.stores.rows import Row, Value
from trunkline.stores.rows.tasks import run_of, step_of

_retry_policies = msgspec.json.Decoder(RetryPolicy)
_dialects = msgspec.json.Decoder(Dialect)
_options = msgspec.json.Decoder(AgentOptions)
_publish_options = msgspec.json.Decoder(PublishOptions)


def agent_record(row: Row) -> Agent:
    (
        name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry,
        max_concurrency, pool, dialect, options, version, created_at, updated_at, publish, agent_id,
    ) = row  # fmt: skip
    return Agent(
        id=agent_id,
        name=name,
        url=url,
        description=description,
        protocol=protocol,
        protocol_config=None if protocol_config is None else cast("JsonObject", decode(protocol_config)),
        auth_type=auth_type,
        secret=secret,
        timeout_ms=timeout_ms,
        retry=None if retry is None else _retry_policies.decode(retry),
        max_concurrency=max_concurrency,
        pool=pool,
        dialect=None if dialect is None else _dialects.decode(dialect),
        options=NO_OPTIONS if options is None else _options.decode(options),
        publish=None if publish is None else _publish_options.decode(publish),
        version=version,
        created_at=Instant(created_at),
        updated_at=Instant(updated_at),
    )


def agent_values(agent: Agent, protocol_config: str | None) -> tuple[Value, ...]:
    """
    Name, url, description, protocol, protocol_config, auth_type, secret, timeout_ms, retry, max_concurrency, pool,
    dialect, options, version, created_at, updated_at, publish, id.
    """
    return (
        agent.name,
        agent.url,
        agent.description,
        agent.protocol,
        protocol_config,
        agent.auth_type,
        agent.secret,
        agent.timeout_ms,
        _json(agent.retry),
        agent.max_concurrency,
        agent.pool,
        _json(agent.dialect),
        options_text(agent),
        agent.version,
        agent.created_at,
        agent.updated_at,
        _json(agent.publish),
        agent.id,
    )


def protocol_config_text(agent: Agent) -> str | None:
    return _json(agent.protocol_config)


def options_text(agent: Agent) -> str | None:
    return None if agent.options == NO_OPTIONS else _json(agent.options)


def keeps_limits(before: Row, agent: Agent) -> bool:
    """
    Whether breaker and rate stay as they are when the agent is changed.

    `before`: its name, url and options. Tags, skills and cost only say how agents are found.
    """
    name, url, stored = before
    options = NO_OPTIONS if stored is None else _options.decode(stored)
    return (name, url, _called_with(options)) == (agent.name, agent.url, _called_with(agent.options))


def _called_with(options: AgentOptions) -> AgentOptions:
    return msgspec.structs.replace(options, tags=(), skills=(), cost=None)


def _json(value: JsonObject | RetryPolicy | Dialect | AgentOptions | PublishOptions | None) -> str | None:
    return None if value is None else encode(value).decode()


def agent_state(row: Row) -> AgentLimitState:
    status, failures, recent, probing, opened_at, retry_at, reason, tokens, refilled_at = row
    return AgentLimitState(
        breaker=Breaker(
            status=status,
            failures=failures,
            recent=recent,
            probing=probing,
            opened_at=opened_at,
            retry_at=retry_at,
            reason=reason,
        ),
        bucket=None if tokens is None else TokenBucket(tokens, refilled_at),
    )


def agent_state_values(agent: str, state: AgentLimitState) -> tuple[Value, ...]:
    """The agent's name, and the columns that `agent_state` reads."""
    breaker, bucket = state.breaker, state.bucket
    return (
        agent,
        breaker.status,
        breaker.failures,
        breaker.recent,
        breaker.probing,
        breaker.opened_at,
        breaker.retry_at,
        breaker.reason,
        None if bucket is None else bucket.tokens,
        None if bucket is None else bucket.refilled_at,
    )


def agent_event(row: Row) -> AgentEvent:
    event_id, agent_id, agent, kind, at, who, why, data = row
    return AgentEvent(
        id=event_id, agent_id=agent_id, agent=agent, kind=kind, at=Instant(at), who=who, why=why, data=data
    )


def agent_event_values(event: AgentEvent) -> tuple[Value, ...]:
    return (event.id, event.agent_id, event.agent, event.kind, event.at, event.who, event.why, event.data)


def check_record(row: Row) -> CheckRecord:
    check_id, agent_id, at, url, protocol, active, grade, passed, report = row
    return CheckRecord(
        id=check_id,
        agent_id=agent_id,
        at=Instant(at),
        url=url,
        protocol=protocol,
        active=bool(active),
        grade=grade,
        passed=bool(passed),
        report=report,
    )


def check_values(check: CheckRecord) -> tuple[Value, ...]:
    return (
        check.id,
        check.agent_id,
        check.at,
        check.url,
        check.protocol,
        int(check.active),
        check.grade,
        int(check.passed),
        check.report,
    )


def grade_of_check(row: Row) -> Grade:
    """Check id, at, grade, passed."""
    check_id, at, grade, passed = row
    return Grade(check_id=check_id, at=Instant(at), grade=grade, passed=bool(passed))


def comparison_record(row: Row) -> ComparisonRecord:
    comparison_id, agent_id, since, run_id, step, at, verdict, record = row
    return ComparisonRecord(
        id=comparison_id,
        agent_id=agent_id,
        since=since,
        run_id=RunId(run_id),
        step=step,
        at=Instant(at),
        verdict=verdict,
        record=record,
    )


def comparison_values(comparison: ComparisonRecord) -> tuple[Value, ...]:
    return (
        comparison.id,
        comparison.agent_id,
        comparison.since,
        comparison.run_id,
        comparison.step,
        comparison.at,
        comparison.verdict,
        comparison.record,
    )


def agent_minute(row: Row) -> AgentMinute:
    agent, minute, calls, failures, total_ms, longest_ms = row
    return AgentMinute(
        agent=agent, minute=minute, calls=calls, failures=failures, total_ms=total_ms, longest_ms=longest_ms
    )


def agent_minute_values(bridge: str, minute: AgentMinute) -> tuple[Value, ...]:
    """Agent, minute, bridge, calls, failures, total_ms, longest_ms."""
    return (
        minute.agent,
        minute.minute,
        bridge,
        minute.calls,
        minute.failures,
        minute.total_ms,
        minute.longest_ms,
    )


def ended_call(row: Row) -> EndedCall:
    """Number, task id, attempt, called_at, ended_at, outcome, error code."""
    number, task_id, attempt, called_at, ended_at, outcome, error_code = row
    return EndedCall(
        row=number,
        run_id=RunId(run_of(task_id)),
        step=step_of(task_id),
        attempt=attempt,
        called_at=called_at,
        ended_at=ended_at,
        outcome=outcome,
        error_code=error_code,
    )
