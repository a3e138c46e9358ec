"""What must not be shown, as far as a name tells."""

from __future__ import annotations

import re
from functools import lru_cache

REDACTED = "[redacted]"
_TELLING_NAME = re.compile(
    r"auth|cookie|token|secret|passw|credential|api-?_?key|signature|session", re.IGNORECASE
)
# Headers with the id of a request to a zone, which its body shows, too.
_HARMLESS = frozenset({"x-zone-session", "x-amzn-bedrock-agentcore-runtime-session-id"})


@lru_cache(maxsize=1_024)
def is_telling(name: str) -> bool:
    """Whether what stands under this name is a secret by all appearances."""
    return _TELLING_NAME.search(name) is not None and name.lower() not in _HARMLESS
