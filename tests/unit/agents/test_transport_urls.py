"""Which transport a url is for, and what a url of each looks like."""

from __future__ import annotations

import pytest

from trunkline.agents import TransportName
from trunkline.agents.http_urls import UrlError
from trunkline.agents.transport_urls import (
    AgentCoreRuntime,
    check_transport_url,
    parse_program,
    parse_runtime,
    transport_of,
)

ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/execution_zone-a1B2c3D4e5"


def test_the_form_of_a_url_tells_its_transport() -> None:
    assert transport_of("https://a.example/x") == "https"
    assert transport_of("HTTP://a.example") == "https"
    assert transport_of(ARN) == "aws-agentcore"
    assert transport_of("stdio:zone") == "stdio"


@pytest.mark.parametrize(
    ("url", "runtime"),
    [
        (ARN, AgentCoreRuntime(ARN, "eu-central-1", None)),
        (f"{ARN}?qualifier=blue_2", AgentCoreRuntime(ARN, "eu-central-1", "blue_2")),
        (f"{ARN}/runtime-endpoint/blue", AgentCoreRuntime(f"{ARN}/runtime-endpoint/blue", "eu-central-1", None)),
        (
            ARN.replace("arn:aws:", "arn:aws-cn:"),
            AgentCoreRuntime(ARN.replace("arn:aws:", "arn:aws-cn:"), "eu-central-1", None),
        ),
        (
            "arn:aws-us-gov:bedrock-agentcore:us-gov-west-1:123456789012:runtime/z",
            AgentCoreRuntime(
                "arn:aws-us-gov:bedrock-agentcore:us-gov-west-1:123456789012:runtime/z", "us-gov-west-1", None
            ),
        ),
    ],
)  # fmt: skip
def test_a_runtime_is_read_from_its_arn(url: str, runtime: AgentCoreRuntime) -> None:
    assert parse_runtime(url) == runtime


@pytest.mark.parametrize(
    "url",
    [
        "arn:aws:lambda:eu-central-1:123456789012:function:f",
        ARN.replace("eu-central-1", ""),
        # The region becomes a part of a host's name.
        ARN.replace("eu-central-1", "eu-central-1.evil.example"),
        ARN.replace("eu-central-1", "evil.example#"),
        ARN.replace("123456789012", "12345"),
        ARN.replace("runtime/", "memory/"),
        f"{ARN}/tasks/send",
        f"{ARN}?qualifier=",
        f"{ARN}?qualifier=a&qualifier=b",
        f"{ARN}?other=a",
        f"{ARN}\n",
        f"{ARN}#x",
        f" {ARN}",
        ARN.upper(),
        ARN + "a" * 200,
    ],
)
def test_what_is_no_arn_of_a_runtime_is_refused(url: str) -> None:
    with pytest.raises(UrlError, match="must have the form arn:aws:bedrock-agentcore:"):
        parse_runtime(url)


@pytest.mark.parametrize("name", ["zone", "z", "Zone_1.2-b", "9"])
def test_a_program_has_a_name(name: str) -> None:
    assert parse_program(f"stdio:{name}") == name


@pytest.mark.parametrize(
    "url", ["stdio:", "stdio:/bin/sh", "stdio:a b", "stdio:-c", "stdio:..", "stdio:a;b", "stdio:a\n", "zone"]
)
def test_a_program_is_never_a_path_or_a_command(url: str) -> None:
    with pytest.raises(UrlError, match="must have the form stdio:NAME"):
        parse_program(url)


@pytest.mark.parametrize(
    ("transport", "url", "reason"),
    [
        ("https", ARN, "it belongs to another transport; set transport to aws-agentcore"),
        ("https", "stdio:zone", "it belongs to another transport; set transport to stdio"),
        ("https", "ftp://a", "its scheme is 'ftp', but only http and https are supported"),
        ("https", "https://a.example", None),
        ("aws-agentcore", ARN, None),
        ("stdio", "stdio:zone", None),
    ],
)
def test_a_url_is_checked_by_its_transport(transport: TransportName, url: str, reason: str | None) -> None:
    assert check_transport_url(transport, url) == reason


@pytest.mark.parametrize("transport", ["aws-agentcore", "stdio"])
def test_no_other_transport_takes_an_address_of_http(transport: TransportName) -> None:
    assert "it must have the form" in str(check_transport_url(transport, "https://a.example"))
