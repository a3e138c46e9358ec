"""
Agents with everything that a call needs (dialect, address, credentials), resolved once and cached.

The one place where a stored secret is opened.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trunkline.agents import AUTO, Agent, Dialect
from trunkline.agents.authentication.auth_config import Credentials, credentials
from trunkline.bridge.agents.negotiation import ChangeObserver, DialectNegotiator, DialectUnclear
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.bridge.wire.exchanges import AuxiliaryRecorder
from trunkline.errors import ConfigurationError, Invalid
from trunkline.messages import StepError, fix_for
from trunkline.protocols import AgentRequest, ProtocolAdapter, ProtocolAdapterFactory
from trunkline.protocols.json_rpc.batches import BatchLimits, batch_limits
from trunkline.services.agents.registry import AgentRegistry
from trunkline.telemetry.redaction import Redaction

_MAX_CACHED = 10_000
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_NO_HEADERS: Mapping[str, str] = {}
# Which process has made a call, for agents' logs; sent only if the settings ask for it.
PROCESS_HEADER = "X-Trunkline-Process"


class ResolvedAgent(msgspec.Struct, frozen=True, kw_only=True):
    agent: Agent
    dialect: Dialect
    # The dialect's name.
    protocol: str
    adapter: ProtocolAdapter
    credentials: Credentials
    # With the credentials in it, where they travel in the query; never shown.
    address: str
    # What every request carries in addition to the correlation id.
    headers: dict[str, str]
    redaction: Redaction
    tokens: TokenProvider
    # Finds the other dialects of the agent.
    resolver: AgentResolver
    # How many of its tasks may be sent in one request; None: each has its own.
    batch: BatchLimits | None = None
    # The dialects to try if the agent refuses this one, too; None: they have not been looked up yet.
    untried: tuple[Dialect, ...] | None = None

    @property
    def needs_token(self) -> bool:
        return self.credentials.oauth is not None or self.credentials.signer is not None

    async def token_headers(
        self, seconds: float, note: AuxiliaryRecorder | None = None, body: bytes = b""
    ) -> Mapping[str, str]:
        """The header with the agent's token for this body, where it wants one; raises `TransportError`."""
        return await self.tokens.headers(self.credentials, self.redaction, seconds, note, body)

    @property
    def streams(self) -> bool:
        """Whether the agent offers streams, and in a dialect that has any."""
        return self.dialect.streams and type(self.adapter).encode_stream is not ProtocolAdapter.encode_stream

    def url(self, request: AgentRequest) -> str:
        """Where this request goes; with the credentials, as `address`."""
        if not request.path:
            return self.address
        endpoint, _, query = self.dialect.url.partition("?")
        target = f"{endpoint.removesuffix('/')}{request.path}"
        if query:
            target += f"{'&' if '?' in request.path else '?'}{query}"
        return self.credentials.add_to(target)


class AgentResolver:
    """Resolves the agents of the registry, or the target of one agent."""

    def __init__(
        self,
        dialects: DialectNegotiator,
        registry: AgentRegistry,
        tokens: TokenProvider,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        """`headers` are sent to every agent."""
        self._negotiator = dialects
        self._registry = registry
        self._tokens = tokens
        self._headers = {**_HEADERS, **headers}
        self._cache: dict[str, ResolvedAgent] = {}

    def on_change(self, note: ChangeObserver) -> None:
        """`note` learns of agents that were updated in place."""
        self._negotiator.on_change(note)

    async def resolve(self, agent: Agent, note: AuxiliaryRecorder | None = None) -> ResolvedAgent | StepError:
        """`note` gets each request that had to be made to find out which dialect the agent speaks."""
        kept = self._cache.get(agent.name)
        if kept is not None and _is_current(kept, agent):
            self._negotiator.refresh_in_background(agent, kept.dialect, kept.credentials)
            return kept
        opened = self.credentials_of(agent)
        if isinstance(opened, StepError):
            return opened
        try:
            dialect = await self._negotiator.dialect_of(agent, opened, note)
        except DialectUnclear as exc:
            return exc.error
        return self._cache_agent(self._resolved(agent, dialect, opened))

    async def resolve_alternative(
        self, refused: ResolvedAgent, because: str = "", note: AuxiliaryRecorder | None = None
    ) -> ResolvedAgent | StepError | None:
        """
        The same agent in another dialect, after it has proved that it did not accept the work in this one.

        `because` is its proof. The next one can be refused, too; None when no dialect is left.
        """
        agent, dialect = refused.agent, refused.dialect
        if refused.untried is not None:
            alternatives = [
                self._negotiator.with_refusal(route, dialect, because) for route in refused.untried
            ]
        else:
            try:
                alternatives = await self._negotiator.alternatives(
                    agent, dialect, because, refused.credentials, note
                )
            except DialectUnclear as exc:
                return exc.error
        if not alternatives:
            return None
        other = self._resolved(agent, alternatives[0], refused.credentials)
        if isinstance(other, StepError):
            return other
        return msgspec.structs.replace(other, untried=tuple(alternatives[1:]))

    async def refresh(self, agent: Agent) -> StepError | None:
        """Reads the agent's card now, and stores its dialect; why that was not possible."""
        opened = self.credentials_of(agent)
        if isinstance(opened, StepError):
            return opened
        try:
            await self._negotiator.refresh(agent, opened)
        except DialectUnclear as exc:
            return exc.error
        self._cache.pop(agent.name, None)
        return None

    async def adopt(self, resolved: ResolvedAgent) -> None:
        """Stores that the agent speaks this dialect."""
        await self._negotiator.adopt(resolved.agent, resolved.dialect)
        self._cache_agent(msgspec.structs.replace(resolved, untried=None))

    def invalidate(self, resolved: ResolvedAgent) -> None:
        """Negotiates the dialect again before the next call, unless it is pinned."""
        if resolved.agent.protocol == AUTO:
            self._negotiator.invalidate(resolved.agent)
            self._cache.pop(resolved.agent.name, None)

    def credentials_of(self, agent: Agent) -> Credentials | StepError:
        """What authenticates us to the agent; or why it cannot be read."""
        try:
            return credentials(agent.name, agent.auth_type, self._registry.secret_of(agent))
        except (ConfigurationError, Invalid) as exc:
            code = "agent_secret_unreadable"
            return StepError(code=code, message=exc.message, fix=fix_for(code))

    def _resolved(self, agent: Agent, dialect: Dialect, opened: Credentials) -> ResolvedAgent | StepError:
        config = agent.protocol_config or {}
        if dialect.tenant is not None:
            config = {"tenant": dialect.tenant, **config}
        if dialect.whole_input:
            config = {"input_mode": "json", **config}
        try:
            adapter = ProtocolAdapterFactory.create_adapter(dialect.protocol, config)
        except Invalid as exc:
            # A protocol, or a profile, that this process does not know: it was registered in another.
            return StepError(code="agent_protocol_unclear", message=exc.message, fix=exc.fix)
        return ResolvedAgent(
            agent=agent,
            dialect=dialect,
            protocol=dialect.protocol,
            adapter=adapter,
            credentials=opened,
            address=opened.add_to(dialect.url),
            headers={**self._headers, **opened.headers},
            redaction=self._tokens.redaction(opened),
            tokens=self._tokens,
            resolver=self,
            # A signed token is for the body of one request.
            batch=None if opened.signer is not None else batch_limits(agent.protocol_config),
        )

    def _cache_agent(self, resolved: ResolvedAgent | StepError) -> ResolvedAgent | StepError:
        if isinstance(resolved, ResolvedAgent):
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[resolved.agent.name] = resolved
        return resolved


def _is_current(resolved: ResolvedAgent, agent: Agent) -> bool:
    # While the agent's dialect is being recorded the agent has none yet; the resolved agent has it.
    return (
        resolved.agent.id == agent.id
        and resolved.agent.version == agent.version
        and (agent.dialect is None or resolved.dialect == agent.dialect)
    )
