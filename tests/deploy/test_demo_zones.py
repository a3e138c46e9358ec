"""`make demo-zones`, as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

ROOT = Path(__file__).parents[2]


def test_the_same_exchange_is_shown_twice_and_every_message_is_as_the_contract_has_it() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "examples.zones.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert re.search(r"^\d+ messages between the zones, 0 violate the contract\.$", told.stdout, re.MULTILINE)
    exchanges = re.findall(r"^ +(?:->|<-) (\{.*)$", told.stdout, re.MULTILINE)
    assert len(exchanges) == 4
    assert exchanges[:2] == exchanges[2:]
    assert "Traceback" not in told.stderr


def test_what_is_no_message_is_refused_before_any_zone_is_asked() -> None:
    command = [sys.executable, "-m", "examples.zones.verification", "http://127.0.0.1:9"]
    environment = {**os.environ, "BOT_TOKEN": "any-token"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        url = service.stdout.readline().strip()
        try:
            for body in (b"", b"no JSON", b"[]", b'{"event_id": 5}', b'{"text": "\xff"}'):
                with pytest.raises(HTTPError) as caught:
                    urllib.request.urlopen(f"{url}/messages", body, timeout=60)
                assert caught.value.code == 400
        finally:
            service.terminate()
