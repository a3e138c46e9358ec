"""`trunkline agents`: the commands for one registered agent at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.agent_secrets import AuthType, auth_config
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import parse_pairs
from trunkline.cli.options import HERE, AgentArgument, Flag, Pairs, Server
from trunkline.cli.rendering.agent import print_agent
from trunkline.cli.rendering.output import note, print_fields, print_json, print_table

if TYPE_CHECKING:
    from trunkline.api.resources.agents import AgentMetadataResource
    from trunkline.jsontypes import JsonObject

Resend = Literal["same_message", "ask_first", "never"]
Transport = Literal["https", "aws-agentcore", "stdio"]


def add(
    name: Annotated[str, Parameter(name="NAME", help="What workflows call it.")],
    agent_url: Annotated[
        str,
        Parameter(name="AGENT-URL", help="Where it takes requests: a URL, a runtime's ARN, or stdio:NAME."),
    ],
    /,
    *,
    protocol: str | None = None,
    config: Pairs = (),
    description: str | None = None,
    auth_type: AuthType = "none",
    auth_env: str | None = None,
    auth_file: str | None = None,
    timeout: int | None = None,
    max_concurrency: int | None = None,
    transport: Transport | None = None,
    resend: Resend | None = None,
    endpoint_override: str | None = None,
    allow_card_origin: Pairs = (),
    rate: float | None = None,
    burst: int | None = None,
    breaker: Flag = False,
    repeatable: Flag = False,
    server: Server = HERE,
) -> int:
    """
    Register an agent.

    A secret never stands on the command line: it is read from an environment variable or a file. For basic it
    is user:password, for headers one Name: value per line, for oauth2 a JSON object with token_url, client_id and
    client_secret, for signed one with key (a private key as PEM), issuer and audience, for mtls a certificate and its
    key as PEM.

    Parameters
    ----------
    protocol
        What it speaks: simple-a2a, jsonrpc-2.0, a2a-1.0 and so on. auto, the default, asks the agent for its card.
    config
        key=value of the protocol's configuration, as often as needed: method=message/send, input_mode=json.
    description
        What it is for.
    auth_type
        How it wants to be authenticated to.
    auth_env
        The environment variable that holds the secret.
    auth_file
        The file that holds the secret.
    timeout
        How long a call may take, in milliseconds.
    max_concurrency
        How many calls it gets at a time.
    transport
        What carries its calls: https (the default, plain http too), aws-agentcore or stdio.
    resend
        What to do when nobody knows whether it has taken a message. Default: ask_first.
    endpoint_override
        Where to send instead of where its card says.
    allow_card_origin
        An origin (https://host:port) that its card may name beside its own, as often as needed.
    rate
        How many calls a second it gets, over all bridges.
    burst
        How many of them at once after a quiet time, with --rate. Default: 1.
    breaker
        Stop calling it for a while when calls keep failing. How exactly: agents apply.
    repeatable
        The same work may be given to it twice, as agents migrate shadow does.
    """
    optional: JsonObject = {
        "protocol": protocol,
        "protocol_config": parse_pairs(config) or None,
        "description": description,
        "auth_config": auth_config(auth_type, env=auth_env, file=auth_file),
        "timeout_ms": timeout,
        "max_concurrency": max_concurrency,
        "transport": transport,
        "resend": resend,
        "endpoint_override": endpoint_override,
        "allow_card_origin": list(allow_card_origin) or None,
        "rate": _rate(rate, burst),
        "breaker": breaker or None,
        "repeatable": repeatable or None,
    }
    spec: JsonObject = {"name": name, "url": agent_url, "auth_type": auth_type}
    spec |= {key: value for key, value in optional.items() if value is not None}
    print_agent(server.client().create_agent(spec), server)
    return Exit.OK


def list_agents(*, protocol: str | None = None, limit: int | None = None, server: Server = HERE) -> int:
    """
    List agents.

    Parameters
    ----------
    protocol
        Only those registered with this protocol.
    limit
        At most this many. Default: all.
    """
    page = server.client().agents(protocol=protocol, limit=limit)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [agent["name"], agent["protocol"], _dialect(agent), agent["url"], agent["auth_type"]]
        for agent in page.items
    ]
    print_table(("AGENT", "PROTOCOL", "SPEAKS", "URL", "AUTH"), rows)
    if not rows:
        note("There are no such agents. Register one with: trunkline agents add NAME URL")
    return Exit.OK


def show(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """Show an agent."""
    found, _ = server.client().agent(agent)
    print_agent(found, server)
    return Exit.OK


def health(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    See whether an agent can be reached.

    Exits with 6 when it cannot, and with 0 when that cannot be found out without giving it work.
    """
    answer = server.client().agent_health(agent)
    if server.json:
        print_json(answer)
    else:
        print_fields([(name.replace("_", " "), value) for name, value in answer.items()])
    return Exit.UNREACHABLE if answer.get("status") == "unhealthy" else Exit.OK


def refresh(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Look again what an agent speaks, now.

    Exits with 6 when that cannot be found out; what was known before stays then.
    """
    print_agent(server.client().refresh_agent(agent), server)
    return Exit.OK


def remove(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Remove an agent.

    Workflows that name it keep the name; their runs fail at that step until it is registered again.
    """
    server.client().remove_agent(agent)
    if server.json:
        print_json({"removed": agent})
    else:
        note(f"{agent} is removed")
    return Exit.OK


def reset(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Close an agent's breaker and fill its bucket.

    Tasks that wait for it go at once. If it still fails, its breaker opens again.
    """
    answer = server.client().reset_agent(agent)
    if server.json:
        print_json(answer)
    else:
        note(f"{answer['name']} is reset")
    return Exit.OK


def _rate(per_second: float | None, burst: int | None) -> JsonObject | None:
    if per_second is None:
        if burst is not None:
            raise CliError("--burst is given without --rate", fix="Add --rate 5", exit_code=Exit.USAGE)
        return None
    return {"per_second": per_second} if burst is None else {"per_second": per_second, "burst": burst}


def _dialect(agent: AgentMetadataResource) -> str:
    dialect = agent["dialect"]
    return dialect["protocol"] if dialect else ""
