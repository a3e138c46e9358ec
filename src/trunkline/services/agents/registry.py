"""
The registry: which agents there are, and how each is called.

Secrets come in and never go out again: the registry gives them to the bridge alone (`secret_of`), and lets
none be sent to another host than the one it was given for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import structlog
from msgspec import UNSET

from trunkline.agents import Agent, AgentOptions, Dialect
from trunkline.agents.authentication.auth_config import sends_elsewhere
from trunkline.agents.http_urls import origin_of
from trunkline.clock import Instant
from trunkline.errors import ConfigurationError, Conflict, Finding, NotFound, StaleVersion
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.drift import DriftRecorder, card_change, put_new_events
from trunkline.services.agents.specs import AgentSpec, check_spec, parse_spec, raise_if_any, spec_document
from trunkline.services.migration.states import refuse_while_migrating
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.security.vault import Vault
from trunkline.stores.base import AgentLoad, Store
from trunkline.stores.port.agents.agent_events import AgentEvent
from trunkline.telemetry import log_events

__all__ = ["AgentRegistry", "AgentSpec", "parse_spec", "spec_document"]

log = structlog.stdlib.get_logger()

# Each try lost a race with another change; more in a row is not an accident.
_MAX_TRIES = 10
# Of an agent: among them is one that succeeded, if it answers at all.
_LAST_CALLS = 20
_FIXED_MEANWHILE = (
    "its url, protocol, protocol_config, transport, endpoint_override, allow_card_origin and "
    "repeatable cannot be changed"
)
_GIVEN_AGAIN = "must be given again, because a stored secret is not sent to a different host"


_SEARCHED_AT_ONCE = 500


class AgentSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents of a list have in common; None: anything."""

    skill: str | None = None
    tag: str | None = None
    # A part of the name, the description, a tag or a skill, in any case.
    text: str | None = None

    def finds(self, agent: Agent) -> bool:
        if self.skill is not None and self.skill not in agent.skills:
            return False
        if self.tag is not None and self.tag not in agent.options.tags:
            return False
        if self.text is None:
            return True
        texts = (agent.name, agent.description or "", *agent.options.tags, *agent.skills)
        return any(self.text.casefold() in text.casefold() for text in texts)


ANY_AGENT = AgentSearch()


class AgentRegistry:
    def __init__(
        self, store: Store, vault: Vault, agent_cache: AgentCache, drifts: DriftRecorder | None = None
    ) -> None:
        self._store = store
        self._vault = vault
        self._agent_cache = agent_cache
        self._drifts = drifts

    async def create(self, spec: AgentSpec) -> Agent:
        """Raises `Invalid`, or `AlreadyExists` when the name is taken."""
        check_spec(spec)
        agent_id = new_id()
        secret = self._vault.seal(spec.auth_config, owner=agent_id) if spec.auth_config else None
        async with self._store.transaction() as tx:
            agent = _described(agent_id, spec, secret, created_at=tx.now, updated_at=tx.now)
            await tx.agents.insert(agent)
            await tx.audit.put([audit_entry("agent", "create", agent.name)])
        self._agent_cache.forget(agent.name)
        return agent

    async def get(self, name_or_id: str) -> Agent:
        agent = await self._store.agents.get(name_or_id)
        if agent is None:
            raise NotFound(
                f"There is no agent {name_or_id!r}.", fix="List the agents: trunkline agents list."
            )
        return agent

    async def list(
        self, *, limit: int, after: str | None = None, protocol: str | None = None, published: bool = False
    ) -> Sequence[Agent]:
        """In the order of their names; `after` is the last name seen. `published`: only those that are."""
        return await self._store.agents.page(limit=limit, after=after, protocol=protocol, published=published)

    async def search(
        self, where: AgentSearch, *, limit: int, after: str | None = None, protocol: str | None = None
    ) -> Sequence[Agent]:
        """In the order of their names; `after` is the last name seen."""
        if where == ANY_AGENT:
            return await self.list(limit=limit, after=after, protocol=protocol)
        found: list[Agent] = []
        while len(found) < limit:
            # Skills and tags are not columns: a registry is short compared with everything else in the store.
            page = await self.list(limit=_SEARCHED_AT_ONCE, after=after, protocol=protocol)
            found += [agent for agent in page if where.finds(agent)]
            if len(page) < _SEARCHED_AT_ONCE:
                break
            after = page[-1].name
        return found[:limit]

    async def replace(self, name_or_id: str, spec: AgentSpec, if_match: int | None = None) -> Agent:
        """
        Everything that `spec` leaves out gets its default, except the secret: without `auth_config` it stays
        as long as `auth_type` does and it goes to no other origin: a client cannot read it to send it again.
        """
        return await self._update(name_or_id, lambda _: spec, if_match)

    async def patch(self, name_or_id: str, patch: JsonObject, if_match: int | None = None) -> Agent:
        """A JSON merge patch, also of the `auth_config`, although it cannot be read."""
        return await self._update(name_or_id, lambda agent: self._patched(agent, patch), if_match)

    async def delete(self, name_or_id: str, if_match: int | None = None) -> None:
        agent = await self.get(name_or_id)
        _compare(agent, if_match)
        async with self._store.transaction() as tx:
            await refuse_while_migrating(tx.agent_events, agent, "it cannot be deleted")
            # Written as it is: the comparison and the deletion are one transaction.
            if if_match is not None and not await tx.agents.update(agent, if_match):
                raise _stale(agent, if_match)
            if not await tx.agents.delete(agent.id):
                raise NotFound(
                    f"The agent {name_or_id!r} no longer exists.",
                    fix="List the agents: trunkline agents list.",
                )
            await tx.audit.put([audit_entry("agent", "delete", agent.name)])
        self._agent_cache.forget(agent.name)

    async def load_of(self, agent: Agent) -> AgentLoad:
        """What it has to do, and what bridges know of it together."""
        return await self._store.agents.load(agent.name)

    async def reset(self, name_or_id: str) -> Agent:
        """Closes its breaker and fills its bucket: tasks that wait for it may go at once."""
        agent = await self.get(name_or_id)
        before = (await self._store.agents.load(agent.name)).state.breaker.status
        async with self._store.transaction() as tx:
            await tx.agents.reset_limits(agent.name)
            await tx.audit.put([audit_entry("agent", "reset", agent.name, breaker=before)])
        log.info(log_events.AGENT_RESET, agent=agent.name, breaker=before)
        return agent

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        """
        Keeps what was found out about `agent`; False when the agent has been changed since it was read.

        The version stays: what the bridge learns does not make a user's ETag stale.
        """
        change = card_change(agent, agent.dialect, dialect)
        recorded: list[AgentEvent] = []
        async with self._store.transaction() as tx:
            if change is not None:
                # Before the agent's row, as everywhere.
                await tx.agent_events.lock()
            written = await tx.agents.update(msgspec.structs.replace(agent, dialect=dialect), agent.version)
            if written and change is not None:
                recorded = await put_new_events(tx, self._store, [change])
        self._agent_cache.forget(agent.name)
        if self._drifts is not None:
            self._drifts.report_events(recorded)
        return written

    async def has_answered_in(self, agent: Agent, dialect: Dialect) -> bool:
        """Whether a call has succeeded since the agent was found to speak this dialect."""
        calls = await self._store.activity.calls(agent.name, limit=_LAST_CALLS)
        return any(call.outcome == "success" and call.ended_at >= dialect.decided_at for call in calls)

    def secret_of(self, agent: Agent) -> JsonObject | None:
        """The `auth_config`, for the bridge alone; `ConfigurationError` when it cannot be opened."""
        return None if agent.secret is None else self._vault.open(agent.secret, owner=agent.id)

    async def _update(
        self, name_or_id: str, change: Callable[[Agent], AgentSpec], if_match: int | None
    ) -> Agent:
        for _ in range(_MAX_TRIES):
            agent = await self.get(name_or_id)
            _compare(agent, if_match)
            spec = change(agent)
            unsaved = self._with(agent, spec)
            if unsaved == agent:
                return agent
            async with self._store.transaction() as tx:
                if _affects_migration(agent, unsaved):
                    await refuse_while_migrating(tx.agent_events, agent, _FIXED_MEANWHILE)
                changed = msgspec.structs.replace(unsaved, version=agent.version + 1, updated_at=tx.now)
                written = await tx.agents.update(changed, agent.version)
                if written:
                    await tx.audit.put(
                        [audit_entry("agent", "change", changed.name, changed=_changes(agent, unsaved))]
                    )
            if written:
                self._agent_cache.forget(agent.name, changed.name)
                return changed
        raise Conflict(f"Other clients keep changing the agent {name_or_id!r}.", fix="Try again later.")

    def _with(self, agent: Agent, spec: AgentSpec) -> Agent:
        """The agent as `spec` describes it, its version as it is."""
        keeps_secret = (
            spec.auth_config is UNSET and agent.secret is not None and spec.auth_type == agent.auth_type
        )
        check_spec(spec, keeps_secret=keeps_secret)
        if keeps_secret:
            _check_origin(agent, spec)
        changed = _described(
            agent.id,
            spec,
            agent.secret if keeps_secret else self._sealed(agent, spec),
            created_at=agent.created_at,
            updated_at=agent.updated_at,
        )
        same_endpoint = _dialect_inputs(changed) == _dialect_inputs(agent)
        return msgspec.structs.replace(
            changed, version=agent.version, dialect=agent.dialect if same_endpoint else None
        )

    def _sealed(self, agent: Agent, spec: AgentSpec) -> bytes | None:
        if not spec.auth_config:
            return None
        if self._readable_secret(agent) == spec.auth_config:
            return agent.secret
        return self._vault.seal(spec.auth_config, owner=agent.id)

    def _readable_secret(self, agent: Agent) -> JsonObject:
        try:
            return self.secret_of(agent) or {}
        except ConfigurationError:
            # Lost with its key; that is why it is given again.
            return {}

    def _patched(self, agent: Agent, patch: JsonObject) -> AgentSpec:
        merged = _merged(spec_document(agent), patch)
        spec = parse_spec(merged)
        if "auth_config" not in patch or not _may_keep_secret(agent, spec):
            return spec
        stored = self._readable_secret(agent)
        changed = _merged({"auth_config": stored}, patch).get("auth_config")
        if isinstance(changed, dict) and sends_elsewhere(stored, changed):
            raise_if_any([Finding(path="auth_config.client_secret", message=_GIVEN_AGAIN)])
        return parse_spec({**merged, "auth_config": changed})


def _described(
    agent_id: str, spec: AgentSpec, secret: bytes | None, *, created_at: Instant, updated_at: Instant
) -> Agent:
    return Agent(
        id=agent_id,
        name=spec.name,
        url=spec.url,
        created_at=created_at,
        updated_at=updated_at,
        description=spec.description,
        protocol=spec.protocol,
        protocol_config=spec.protocol_config,
        auth_type=spec.auth_type,
        secret=secret,
        timeout_ms=spec.timeout_ms,
        retry=spec.retry,
        max_concurrency=spec.max_concurrency,
        pool=spec.pool,
        options=spec.options,
        publish=spec.publish,
    )


def _merged(document: JsonObject, patch: JsonObject) -> JsonObject:
    """RFC 7396."""
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            present = merged.get(key)
            merged[key] = _merged(present if isinstance(present, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _compare(agent: Agent, if_match: int | None) -> None:
    if if_match is not None and agent.version != if_match:
        raise _stale(agent, if_match)


def _stale(agent: Agent, if_match: int) -> StaleVersion:
    return StaleVersion(f"The agent {agent.name!r} has changed since version {if_match}.")


def _changes(agent: Agent, changed: Agent) -> list[Json]:
    """The names of the fields that differ; a detected dialect is not a change."""
    shown = {"secret": "auth_config"}
    return [
        shown.get(name, name)
        for name in agent.__struct_fields__
        if name != "dialect" and getattr(agent, name) != getattr(changed, name)
    ]


def _dialect_inputs(agent: Agent) -> tuple[object, ...]:
    """What the dialect was detected from; it is detected again when any of this changes."""
    options = agent.options
    return (
        agent.url,
        agent.protocol,
        agent.protocol_config,
        options.transport,
        options.endpoint_override,
        options.allow_card_origin,
    )


def _affects_migration(agent: Agent, changed: Agent) -> bool:
    """Whether runs in progress would call another endpoint, or an agent would be shadowed that must not be."""
    stops_repeating = agent.options.repeatable and not changed.options.repeatable
    return stops_repeating or _dialect_inputs(changed) != _dialect_inputs(agent)


def may_get_secret(agent: Agent, url: str) -> bool:
    """Whether the agent's secret was given for that place, too."""
    return origin_of(url) in _origins(agent.url, agent.options)


def _may_keep_secret(agent: Agent, spec: AgentSpec) -> bool:
    return spec.auth_type == agent.auth_type and _origins(spec.url, spec.options) <= _origins(
        agent.url, agent.options
    )


def _check_origin(agent: Agent, spec: AgentSpec) -> None:
    # A user who may change an address could otherwise have the secret sent to their own host and read it there.
    if not _may_keep_secret(agent, spec):
        raise_if_any([Finding(path="auth_config", message=_GIVEN_AGAIN)])


def _origins(url: str, options: AgentOptions) -> set[str | None]:
    """Where the agent's secret may be sent."""
    override = options.endpoint_override
    places = (url, *options.allow_card_origin, *(() if override is None else (override,)))
    return {origin_of(place) for place in places}
