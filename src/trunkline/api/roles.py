"""
The minimum role of an API key for each operation.

    caller    call published agents and workflows over A2A, those that the key names, and see its own tasks
    viewer    read everything
    operator  start and control runs; send events; fire, pause and resume triggers; pause, resume and test
              subscriptions, and repeat their deliveries; test, check, reset and roll back agents; replay and delete
              dead letters
    admin     everything

A test compares the table with the OpenAPI document. An operation that is missing in the table requires admin.
"""

from __future__ import annotations

import re

from trunkline.services.agents.push_notifications import PUSH_PATH
from trunkline.services.people.answer_links import ANSWER_PATH
from trunkline.services.triggers.webhooks import HOOK_PATH
from trunkline.stores.base import KeyRole

# None: no key is needed.
ROLES: dict[str, KeyRole | None] = {
    "GET /livez": None,
    "GET /readyz": "viewer",
    "GET /health": None,
    "GET /health/ready": "viewer",
    "GET /metrics": "viewer",
    "GET /openapi.json": "viewer",
    "GET /asyncapi.json": "viewer",
    # runs
    "POST /api/v1/workflows/{workflow}/execute": "operator",
    "GET /api/v1/runs": "viewer",
    "GET /api/v1/runs/changes": "viewer",
    "GET /api/v1/runs/{run}": "viewer",
    "PATCH /api/v1/runs/{run}": "operator",
    "GET /api/v1/runs/{run}/steps": "viewer",
    "GET /api/v1/runs/{run}/steps/{step}": "viewer",
    "GET /api/v1/runs/{run}/events": "viewer",
    "GET /api/v1/runs/{run}/wire": "viewer",
    "GET /api/v1/runs/{run}/logs": "viewer",
    "GET /api/v1/runs/{run}/push-configs": "viewer",
    "GET /api/v1/runs/{run}/blobs/{blob}": "viewer",
    "GET /api/v1/error-codes": "viewer",
    "POST /api/v1/runs/{run}/cancel": "operator",
    "POST /api/v1/runs/{run}/pause": "operator",
    "POST /api/v1/runs/{run}/resume": "operator",
    "POST /api/v1/runs/{run}/retry": "operator",
    "POST /api/v1/runs/{run}/compensate": "operator",
    # Deleting requires admin.
    "POST /api/v1/runs/bulk": "operator",
    "GET /api/v1/jobs": "viewer",
    "GET /api/v1/jobs/{job}": "viewer",
    "POST /api/v1/jobs/{job}/cancel": "operator",
    "POST /api/v1/runs/{run}/push-configs/{config}/enable": "operator",
    "DELETE /api/v1/runs/{run}/push-configs/{config}": "operator",
    "POST /api/v1/runs/{run}/steps/{step}/reply": "operator",
    "POST /api/v1/runs/{run}/steps/{step}/resolve": "operator",
    # workflows
    "POST /api/v1/workflows": "admin",
    "GET /api/v1/workflows": "viewer",
    "GET /api/v1/workflows/{workflow}": "viewer",
    "PUT /api/v1/workflows/{workflow}/publish": "admin",
    "GET /api/v1/workflows/{workflow}/graph": "viewer",
    "GET /api/v1/workflows/{workflow}/versions": "viewer",
    "GET /api/v1/workflows/{workflow}/versions/{version}": "viewer",
    "POST /api/v1/workflow-validation": "viewer",
    "GET /api/v1/workflow-schema": "viewer",
    # schemas
    "GET /api/v1/schemas": "viewer",
    "GET /api/v1/schemas/{schema}": "viewer",
    "PUT /api/v1/schemas/{schema}": "admin",
    "DELETE /api/v1/schemas/{schema}": "admin",
    # cache
    "GET /api/v1/cache": "viewer",
    "DELETE /api/v1/cache": "operator",
    # triggers
    "POST /api/v1/triggers": "admin",
    "GET /api/v1/triggers": "viewer",
    "GET /api/v1/triggers/{trigger}": "viewer",
    "PUT /api/v1/triggers/{trigger}": "admin",
    "DELETE /api/v1/triggers/{trigger}": "admin",
    "POST /api/v1/triggers/{trigger}/pause": "operator",
    "POST /api/v1/triggers/{trigger}/resume": "operator",
    "POST /api/v1/triggers/{trigger}/fire": "operator",
    "POST /api/v1/triggers/{trigger}/backfill": "operator",
    "GET /api/v1/triggers/{trigger}/firings": "viewer",
    "POST /api/v1/schedule-preview": "viewer",
    "POST /api/v1/trigger-validation": "viewer",
    "GET /api/v1/trigger-schema": "viewer",
    "GET /api/v1/upcoming-firings": "viewer",
    # subscriptions
    "POST /api/v1/subscriptions": "admin",
    "GET /api/v1/subscriptions": "viewer",
    "GET /api/v1/subscriptions/{subscription}": "viewer",
    "PUT /api/v1/subscriptions/{subscription}": "admin",
    "DELETE /api/v1/subscriptions/{subscription}": "admin",
    "POST /api/v1/subscriptions/{subscription}/pause": "operator",
    "POST /api/v1/subscriptions/{subscription}/resume": "operator",
    "POST /api/v1/subscriptions/{subscription}/test": "operator",
    "GET /api/v1/subscriptions/{subscription}/deliveries": "viewer",
    "POST /api/v1/subscriptions/{subscription}/deliveries/{delivery}/redeliver": "operator",
    # agents
    "POST /api/v1/agents": "admin",
    "GET /api/v1/agents": "viewer",
    "GET /api/v1/agents/{agent}": "viewer",
    "PUT /api/v1/agents/{agent}": "admin",
    "PATCH /api/v1/agents/{agent}": "admin",
    "DELETE /api/v1/agents/{agent}": "admin",
    "GET /api/v1/agents/{agent}/health": "viewer",
    "GET /api/v1/agents/{agent}/card": "viewer",
    "GET /api/v1/agents/{agent}/activity": "viewer",
    "GET /api/v1/agents/{agent}/calls": "viewer",
    "POST /api/v1/agents/{agent}/try": "operator",
    "POST /api/v1/agents/{agent}/check": "operator",
    "GET /api/v1/agents/{agent}/checks": "viewer",
    "GET /api/v1/agents/{agent}/checks/{check}": "viewer",
    "POST /api/v1/agents/{agent}/reset": "operator",
    "POST /api/v1/agents/{agent}/refresh": "operator",
    # migrations of agents; an operator may only roll back
    "GET /api/v1/migration": "viewer",
    "GET /api/v1/migration/events": "viewer",
    "GET /api/v1/migration/agents/{agent}": "viewer",
    "GET /api/v1/migration/agents/{agent}/comparisons": "viewer",
    "POST /api/v1/migration/agents/{agent}/check": "operator",
    "POST /api/v1/migration/agents/{agent}/ready": "admin",
    "POST /api/v1/migration/agents/{agent}/shadow": "admin",
    "POST /api/v1/migration/agents/{agent}/canary": "admin",
    "POST /api/v1/migration/agents/{agent}/cutover": "admin",
    "POST /api/v1/migration/agents/{agent}/rollback": "operator",
    "POST /api/v1/migration/agents/{agent}/finish": "admin",
    "POST /api/v1/migration/cutover": "admin",
    "POST /api/v1/migration/rollback": "operator",
    "POST /api/v1/migration/finish": "admin",
    # named secrets
    "GET /api/v1/secrets": "viewer",
    "PUT /api/v1/secrets/{secret}": "admin",
    "DELETE /api/v1/secrets/{secret}": "admin",
    # API keys
    "GET /api/v1/keys": "admin",
    "POST /api/v1/keys": "admin",
    "DELETE /api/v1/keys/{key}": "admin",
    # inbox
    "GET /api/v1/inbox": "viewer",
    "GET /api/v1/inbox/{item}": "viewer",
    "POST /api/v1/inbox/{item}/claim": "operator",
    "POST /api/v1/inbox/{item}/release": "operator",
    "POST /api/v1/inbox/{item}/files": "operator",
    "GET /api/v1/inbox/{item}/comments": "viewer",
    "POST /api/v1/inbox/{item}/comments": "operator",
    # A link answers in the name of another person.
    "POST /api/v1/inbox/{item}/links": "admin",
    # answer links: the token authenticates the person
    f"GET {ANSWER_PATH}/{{token}}": None,
    f"POST {ANSWER_PATH}/{{token}}": None,
    # events and signals
    "POST /api/v1/events": "operator",
    "GET /api/v1/events": "viewer",
    "GET /api/v1/events/{event}": "viewer",
    "POST /api/v1/runs/{run}/signals/{name}": "operator",
    # push notifications of agents: the URL and its token authenticate
    "POST /hooks/a2a/{token}": None,
    # webhooks of triggers: the URL, and what the trigger verifies
    "POST /hooks/triggers/{token}": None,
    # the system itself
    "GET /api/v1/system": "viewer",
    "GET /api/v1/audit": "viewer",
    "GET /api/v1/audit/export": "viewer",
    "GET /api/v1/me": "viewer",
    # dead letters
    "GET /api/v1/dead-letters": "viewer",
    "GET /api/v1/dead-letters/{letter}": "viewer",
    "POST /api/v1/dead-letters/{letter}/replay": "operator",
    "DELETE /api/v1/dead-letters/{letter}": "operator",
}

_HOOKS = (f"{PUSH_PATH}/", f"{HOOK_PATH}/")
# Published workflows, which are not in the OpenAPI document.
_PUBLISHED = "/a2a/"
_CATALOG = "/a2a/catalog"
_ROOT_CARD = "/.well-known/agent-card.json"
_CARDS = re.compile(r"/a2a/(?:agents|workflows)/[^/]+/\.well-known/agent(?:-card)?\.json")
_RANKS: dict[KeyRole, int] = {"caller": 0, "viewer": 1, "operator": 2, "admin": 3}
_PLACEHOLDER = re.compile(r"\\\{\w+\\\}")


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(_PLACEHOLDER.sub("[^/]+", re.escape(path)))


_EXACT: dict[str, KeyRole | None] = {call: role for call, role in ROLES.items() if "{" not in call}
_PATTERNS: list[tuple[re.Pattern[str], KeyRole | None]] = [
    (_pattern(call), role) for call, role in ROLES.items() if "{" in call
]


def role_for(method: str, path: str) -> KeyRole | None:
    """The minimum role for a call. A viewer may learn that an address does not exist."""
    if path.startswith(_HOOKS):
        # For all methods: an agent that uses the wrong one gets a 405, because it has no key.
        return None
    if path == _ROOT_CARD:
        return None
    if path.startswith(_PUBLISHED):
        return _published_role(path)
    call = f"{method} {path}"
    if call in _EXACT:
        return _EXACT[call]
    for pattern, role in _PATTERNS:
        if pattern.fullmatch(call):
            return role
    return "viewer" if method == "GET" else "admin"


def _published_role(path: str) -> KeyRole | None:
    """Anyone may read the card of what is published; it says whether a key is needed for the rest."""
    return None if _CARDS.fullmatch(path) else "caller"


def may_omit_key(path: str) -> bool:
    """Whether the publication at the path decides if a request without a key is answered."""
    return path.startswith(_PUBLISHED) and path.rstrip("/") != _CATALOG


def allows(given: KeyRole, needed: KeyRole) -> bool:
    return _RANKS[given] >= _RANKS[needed]
