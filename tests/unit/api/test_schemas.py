"""The public names of `trunkline.api.schemas`, for Python code that prepares a registration."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trunkline.api.resources.agents.registry import AgentMetadataResource
from trunkline.api.schemas import AgentCreate, AgentMetadata, AgentProtocol, JsonRpcProtocolConfig
from trunkline.jsontypes import Json
from trunkline.protocols import ProtocolAdapterFactory
from trunkline.services.agents.specs import FIELDS

URL = "http://localhost:8080/agent"


def test_nothing_given_means_auto() -> None:
    agent = AgentCreate(name="A", url=URL)
    assert agent.protocol is AgentProtocol.AUTO
    assert agent.protocol_config is None


def test_the_protocols_are_auto_and_those_that_are_built_in() -> None:
    assert {"auto", *ProtocolAdapterFactory.supported_protocols()} == {
        protocol.value for protocol in AgentProtocol
    }


def test_the_defaults_of_json_rpc_are_those_of_the_seeds() -> None:
    config = JsonRpcProtocolConfig()
    assert (config.method, config.version, config.input_mode) == ("message/send", "2.0", "text")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"name": "a/b"},
        {"url": "ftp://localhost"},
        {"protocol": "soap"},
        {"protocol": "jsonrpc-2.0", "protocol_config": {"version": "1.0"}},
        {"protocol": "jsonrpc-2.0", "protocol_config": {"methd": "x"}},
        {"auth_type": "kerberos"},
        {"timeout_ms": 0},
        {"retry": {"first_delay": "soon"}},
        {"tiemout_ms": 1},
    ],
)
def test_what_the_registry_would_refuse_is_refused(fields: dict[str, Json]) -> None:
    with pytest.raises(ValidationError):
        AgentCreate.model_validate({"name": "A", "url": URL, **fields})


def test_an_agent_is_shown_without_its_secret() -> None:
    assert "auth_config" in AgentCreate.model_fields
    assert "auth_config" not in AgentMetadata.model_fields


def test_the_models_have_the_fields_of_the_registry_and_of_the_resource() -> None:
    assert set(AgentCreate.model_fields) == set(FIELDS)
    assert set(AgentMetadata.model_fields) == set(AgentMetadataResource.__annotations__)
