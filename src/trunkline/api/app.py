"""The ASGI application: routes on services, errors as problems, one OpenAPI document."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.middleware.auth import ApiKeyCheck
from trunkline.api.middleware.body_memory import BodyMemory
from trunkline.api.middleware.correlation import CorrelationMiddleware
from trunkline.api.middleware.origin_check import OriginCheck
from trunkline.api.middleware.web_ui import WebUi
from trunkline.api.routes.agents.activity import activity_operations
from trunkline.api.routes.agents.checks import agent_test_call_operations, check_operations
from trunkline.api.routes.agents.migration import migration_operations
from trunkline.api.routes.agents.registry import agent_operations
from trunkline.api.routes.answers import answer_operations
from trunkline.api.routes.automation.events import event_operations
from trunkline.api.routes.automation.subscriptions import subscription_operations
from trunkline.api.routes.automation.triggers import trigger_operations
from trunkline.api.routes.automation.webhooks import webhook_operations
from trunkline.api.routes.blobs import blob_operations
from trunkline.api.routes.dead_letters import dead_letter_operations
from trunkline.api.routes.documents import document_operations
from trunkline.api.routes.hooks import hook_operations
from trunkline.api.routes.inbox import inbox_operations
from trunkline.api.routes.jobs import job_operations
from trunkline.api.routes.keys import key_operations
from trunkline.api.routes.push_configs import push_config_operations
from trunkline.api.routes.run_control import run_control_operations
from trunkline.api.routes.run_logs import run_log_operations
from trunkline.api.routes.runs import run_operations
from trunkline.api.routes.schemas import schema_operations
from trunkline.api.routes.secrets import secret_operations
from trunkline.api.routes.system import cache_operations, probe_operations, system_operations
from trunkline.api.routes.workflows import workflow_operations
from trunkline.api.routing import OperationRouter
from trunkline.api.services import HealthReport, Probes, RequestLimits, Services

__all__ = ["HealthReport", "RequestLimits", "Services", "create_app", "create_probe_app"]


# Where published workflows and agents are, which another application answers for.
PUBLISHED = "/a2a/"
# The installation's own card, which lists what is published.
ROOT_CARD = "/.well-known/agent-card.json"


def create_app(services: Services, published: ASGIApp | None = None) -> ASGIApp:
    """
    The REST API over `services`, which stay the caller's to close.

    `published` answers every request under `/a2a/`, and for the installation's card, behind the same checks.
    """
    operations = [
        *agent_operations(services),
        *migration_operations(services),
        *check_operations(services),
        *activity_operations(services),
        *agent_test_call_operations(services),
        *run_control_operations(services),
        *job_operations(services),
        *run_operations(services),
        *run_log_operations(services),
        *push_config_operations(services),
        *workflow_operations(services),
        *trigger_operations(services),
        *subscription_operations(services),
        *secret_operations(services),
        *schema_operations(services),
        *cache_operations(services),
        *key_operations(services),
        *inbox_operations(services),
        *answer_operations(services),
        *event_operations(services),
        *blob_operations(services),
        *dead_letter_operations(services),
        *hook_operations(services),
        *webhook_operations(services),
        *system_operations(services),
        *probe_operations(services),
    ]
    # No documentation pages: they would load scripts from another host.
    router = OperationRouter([*operations, *document_operations(services, operations)])
    answering = router if published is None else _with_published(router, published)
    counted = BodyMemory(answering, services.limits)
    # Outside of the check for keys: the page is public, and asks for a key itself.
    pages = WebUi(_checked(counted, services), services.ui_folder)
    return CorrelationMiddleware(OriginCheck(pages, services.names))


def _with_published(app: ASGIApp, published: ASGIApp) -> ASGIApp:
    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        is_published = scope["type"] == "http" and (
            scope["path"].startswith(PUBLISHED) or scope["path"] == ROOT_CARD
        )
        await (published if is_published else app)(scope, receive, send)

    return respond


def create_probe_app(probes: Probes) -> ASGIApp:
    """What a process without the API answers: `/livez`, `/readyz` and `/metrics`."""
    app = OperationRouter(probe_operations(probes))
    return CorrelationMiddleware(OriginCheck(_checked(app, probes), probes.names))


def _checked(app: ASGIApp, probes: Probes) -> ASGIApp:
    return app if probes.keys is None else ApiKeyCheck(app, probes.keys, probes.limits)
