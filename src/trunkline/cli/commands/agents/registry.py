"""`trunkline agents`: the commands for one registered agent at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.agent_secrets import AuthType, auth_config
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import Choice, parse_pairs
from trunkline.cli.options import (
    HERE,
    AgentArgument,
    Cursor,
    Duration,
    FileText,
    LimitOrAll,
    Origins,
    Pairs,
    Server,
    Skills,
    Tags,
    Variable,
)
from trunkline.cli.rendering.agent import print_agent
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_deleted,
    print_fields,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from trunkline.api.resources.agents.registry import AgentMetadataResource
    from trunkline.jsontypes import JsonObject

Resend = Annotated[Literal["same_message", "ask_first", "never"], Choice]
Transport = Annotated[Literal["https", "aws-agentcore", "stdio"], Choice]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AgentFlags:
    """
    The fields of an agent; what is left out is the default, or stays as it is.

    Parameters
    ----------
    protocol
        Protocol of the agent: simple-a2a, jsonrpc-2.0, a2a-1.0 and so on. Default: auto, which detects it.
    config
        key=value in the protocol configuration, such as method=message/send. Can be repeated.
    description
        What the agent does.
    auth_type
        Authentication type.
    auth_env
        Environment variable that contains the secret.
    auth_file
        File that contains the secret.
    timeout
        Timeout of a call, such as 30s.
    max_concurrency
        Maximum number of concurrent calls.
    pool
        Pool of bridges that calls the agent.
    transport
        Transport of the calls. Default: https, which also covers plain http.
    resend
        What to do if it is unknown whether the agent received a message. Default: ask_first.
    endpoint_override
        URL to call instead of the one in the agent card.
    allow_card_origin
        Another origin (https://host:port) that the agent card may name. Can be repeated.
    rate
        Maximum calls per second, over all bridges.
    burst
        Burst size, with --rate. Default: 1.
    breaker
        Stop calling the agent for a while when calls keep failing. To change the limits, use agents apply.
    repeatable
        The agent may receive the same work twice, which agents migrate shadow needs.
    cost
        What a call costs, in a unit of your choice. Steps with select: cheapest compare it.
    tag
        Tag by which the agent is found. Can be repeated, and replaces the earlier tags.
    skill
        Skill of the agent. Can be repeated, and replaces the skills in its card.
    """

    protocol: str | None = None
    config: Pairs = ()
    description: str | None = None
    auth_type: AuthType | None = None
    auth_env: Variable = None
    auth_file: FileText = None
    timeout: Duration = None
    max_concurrency: int | None = None
    pool: str | None = None
    transport: Transport | None = None
    resend: Resend | None = None
    endpoint_override: str | None = None
    allow_card_origin: Origins = ()
    rate: float | None = None
    burst: int | None = None
    breaker: bool | None = None
    repeatable: bool | None = None
    cost: float | None = None
    tag: Tags = ()
    skill: Skills = ()

    def fields(self) -> JsonObject:
        """Those that are given, as the API names them."""
        optional: JsonObject = {
            "protocol": self.protocol,
            "protocol_config": parse_pairs(self.config) or None,
            "description": self.description,
            "auth_type": self.auth_type,
            "auth_config": auth_config(self.auth_type or "none", env=self.auth_env, file=self.auth_file),
            "timeout_ms": None if self.timeout is None else round(self.timeout.total_seconds() * 1000),
            "max_concurrency": self.max_concurrency,
            "pool": self.pool,
            "transport": self.transport,
            "resend": self.resend,
            "endpoint_override": self.endpoint_override,
            "allow_card_origin": list(self.allow_card_origin) or None,
            "rate": _rate(self.rate, self.burst),
            "breaker": self.breaker,
            "repeatable": self.repeatable,
            "cost": self.cost,
            "tags": list(self.tag) or None,
            "skills": list(self.skill) or None,
        }
        return {name: value for name, value in optional.items() if value is not None}


NO_FLAGS = AgentFlags()


def create(
    name: Annotated[str, Parameter(name="NAME", help="Name of the agent in workflows.")],
    agent_url: Annotated[
        str,
        Parameter(name="AGENT-URL", help="Where the agent receives requests: a URL, an ARN, or stdio:NAME."),
    ],
    /,
    *,
    flags: AgentFlags = NO_FLAGS,
    server: Server = HERE,
) -> int:
    """
    Register an agent.

    Secrets are read from an environment variable or a file, because other processes can read the command line. The
    secret is user:password for basic, one Name: value per line for headers, a JSON object with token_url, client_id
    and client_secret for oauth2, a JSON object with key (a private key as PEM), issuer and audience for signed, and a
    certificate with its key as PEM for mtls.
    """
    spec: JsonObject = {"auth_type": "none", **flags.fields(), "name": name, "url": agent_url}
    print_agent(server.client().create_agent(spec), server)
    return Exit.OK


def update(
    agent: AgentArgument,
    /,
    *,
    agent_url: str | None = None,
    flags: AgentFlags = NO_FLAGS,
    server: Server = HERE,
) -> int:
    """
    Update an agent.

    Changes only what you name. --config changes single keys, and key=null removes one. To move an agent
    to another protocol or URL step by step, use agents migrate.

    Parameters
    ----------
    agent_url
        Where the agent receives requests: a URL, an ARN, or stdio:NAME.
    """
    patch = flags.fields()
    if agent_url is not None:
        patch["url"] = agent_url
    if not patch:
        raise CliError(
            "There is nothing to update",
            fix="Name what to change, such as: --timeout 60s",
            exit_code=Exit.USAGE,
        )
    changed, _ = server.client().patch_agent(agent, patch, None)
    print_agent(changed, server)
    return Exit.OK


def list_agents(
    *,
    protocol: str | None = None,
    skill: str | None = None,
    tag: str | None = None,
    search: str | None = None,
    limit: LimitOrAll = None,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    List agents.

    Parameters
    ----------
    protocol
        List only agents that are registered with this protocol.
    skill
        List only agents with this skill.
    tag
        List only agents with this tag.
    search
        List only agents with this text in their name, description, tags or skills.
    """
    filters = {"protocol": protocol, "skill": skill, "tag": tag, "q": search}
    page = server.client().agents(limit=limit, cursor=cursor, **filters)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [agent["name"], agent["protocol"], _dialect(agent), agent["url"], agent["auth_type"]]
        for agent in page.items
    ]
    print_table(("AGENT", "PROTOCOL", "DETECTED", "URL", "AUTH"), rows)
    if not rows:
        note("No matching agents. Register one with: trunkline agents create NAME URL")
    asked = {"protocol": protocol, "skill": skill, "tag": tag, "search": search}
    note_next_page(("agents", "list"), asked, page.next_cursor)
    return Exit.OK


def show(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """Show an agent."""
    found, _ = server.client().agent(agent)
    print_agent(found, server)
    return Exit.OK


def health(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Check whether an agent is reachable.

    Exits with 6 if the agent is unreachable, and with 0 if only sending it work could tell.
    """
    answer = server.client().agent_health(agent)
    if server.json:
        print_json(answer)
    else:
        print_fields([(name.replace("_", " "), value) for name, value in answer.items()])
    return Exit.UNREACHABLE if answer.get("status") == "unhealthy" else Exit.OK


def refresh(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Re-detect an agent's protocol.

    Exits with 6 if the protocol cannot be detected. The earlier result is kept then.
    """
    print_agent(server.client().refresh_agent(agent), server)
    return Exit.OK


def delete(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Delete an agent.

    Workflows that use it stay as they are. Their runs fail at that step until you register the agent again.
    """
    server.client().delete_agent(agent)
    print_deleted("agent", agent, as_json=server.json)
    return Exit.OK


def reset(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Reset an agent's circuit breaker and rate limit.

    Waiting tasks are sent immediately. If the agent still fails, its breaker opens again.
    """
    answer = server.client().reset_agent(agent)
    if server.json:
        print_json(answer)
    else:
        note(f"Reset agent {answer['name']}")
    return Exit.OK


def _rate(per_second: float | None, burst: int | None) -> JsonObject | None:
    if per_second is None:
        if burst is not None:
            raise CliError("--burst needs --rate", fix="Add --rate 5", exit_code=Exit.USAGE)
        return None
    return {"per_second": per_second} if burst is None else {"per_second": per_second, "burst": burst}


def _dialect(agent: AgentMetadataResource) -> str:
    dialect = agent["dialect"]
    return dialect["protocol"] if dialect else ""
