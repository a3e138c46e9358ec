"""
The ASGI application of published workflows and agents.

    POST /a2a/workflows/{name}                                 JSON-RPC, with and without a slash at the end
    …    /a2a/workflows/{name}/message:send, /tasks, …         HTTP+JSON
    GET  /a2a/workflows/{name}/.well-known/agent-card.json     the card
    …    /a2a/agents/{name}                                    the same for an agent
    GET  /a2a/catalog                                          the cards of everything that is published
    GET  /.well-known/agent-card.json                          the installation's own card
"""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.api.app import PUBLISHED
from trunkline.api.correlation_ids import correlation_id_of
from trunkline.api.middleware.auth import caller_of, key_id_of
from trunkline.api.problems import method_not_allowed, problem_of, unexpected
from trunkline.api.routes.run_control import begin_request_span
from trunkline.api.services import Services
from trunkline.clock import Clock
from trunkline.errors import NotFound, TrunklineError
from trunkline.messages import TraceContext
from trunkline.publishing.access import refused
from trunkline.publishing.answers import AnswerReader
from trunkline.publishing.bindings.caller_request import active_extensions
from trunkline.publishing.bindings.http_json import HttpJsonBinding
from trunkline.publishing.bindings.json_rpc import JsonRpcBinding
from trunkline.publishing.bindings.push_configs import PushConfigRequests
from trunkline.publishing.bindings.requests import CallerRequests
from trunkline.publishing.cards.agent_cards import CARD_PATH, OLD_CARD_PATH
from trunkline.publishing.cards.catalog import CATALOG_PATH, Catalog
from trunkline.publishing.cards.pages import CardPages, GrpcAddress
from trunkline.publishing.errors import HttpStatuses
from trunkline.publishing.files import StoredFiles
from trunkline.publishing.incoming_exchanges import IncomingExchanges
from trunkline.publishing.operations import ANONYMOUS, Caller, PublishedOperations
from trunkline.publishing.publications import Publications
from trunkline.publishing.streams import OpenStreams
from trunkline.publishing.tasks import TaskReader
from trunkline.services.agents.published import AgentWorkflows
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics

PREFIX = PUBLISHED
# What `started_by` of a run says: this, and the key's name if keys are in use.
STARTED_BY = "a2a"


class _Address(NamedTuple):
    kind: str
    name: str
    # What follows the name; empty or beginning with a slash.
    rest: str


def _address(path: str) -> _Address | None:
    kind, slash, rest = path.removeprefix(PREFIX).partition("/")
    name, slash, below = rest.partition("/")
    return _Address(kind, name, slash + below) if name else None


class PublishingApp:
    def __init__(
        self,
        services: Services,
        store: Store,
        metrics: Metrics,
        *,
        public_url: str | None,
        clock: Clock,
        max_wire_bytes: int,
        http_statuses: HttpStatuses,
        grpc: GrpcAddress,
    ) -> None:
        self._incoming = IncomingExchanges(store, clock, max_wire_bytes)
        self._publications = Publications(services.workflows, services.registry, AgentWorkflows(store))
        self._cards = CardPages(
            Catalog(services.workflows, services.registry, self._publications),
            public_url=public_url,
            has_keys=services.keys is not None,
            grpc=grpc,
        )
        answers = AnswerReader(services.workflows, StoredFiles(services.blobs, store.runs))
        operations = PublishedOperations(
            services.runs,
            services.run_queries,
            services.workflows,
            TaskReader(store, services.run_queries, answers),
            answers,
            services.push_configs,
            services.stopping,
        )
        streams = OpenStreams()
        metrics.a2a_streams.set_function(lambda: streams.number)
        requests = CallerRequests(
            operations,
            PushConfigRequests(operations, services.push_configs),
            self._cards,
            services.run_queries,
            streams,
            services.stopping,
        )
        self._rpc = JsonRpcBinding(requests, metrics, services.limits.max_body_bytes)
        self._http = HttpJsonBinding(requests, metrics, services.limits.max_body_bytes, http_statuses)
        self._traces = services.traces
        self._has_keys = services.keys is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except TrunklineError as exc:
            response = problem_of(request, exc)
        except Exception as exc:  # noqa: BLE001 - no layer outside answers it; it is logged
            response = unexpected(request, exc)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if request.scope["path"].rstrip("/") == PREFIX + CATALOG_PATH:
            # Which routing sets for the operations of the API.
            request.scope.setdefault("path_params", {})
            return await self._cards.serve_catalog(request)
        if request.scope["path"] == CARD_PATH:
            request.scope.setdefault("path_params", {})
            return await self._cards.serve_root_card(request)
        address = _address(request.scope["path"])
        publication = None if address is None else await self._publications.find(address.kind, address.name)
        if address is None or publication is None:
            raise NotFound(
                "Nothing is published under this address.",
                fix="See /a2a/catalog for what is published, or publish the workflow or the agent: publish: true.",
            )
        if address.rest in (CARD_PATH, OLD_CARD_PATH):
            is_old = address.rest == OLD_CARD_PATH or request.headers.get("a2a-version", "").startswith("0.3")
            return self._cards.serve_card(request, publication, is_old=is_old)
        denied = refused(request, publication, has_keys=self._has_keys)
        if denied is not None:
            return denied
        is_rpc = address.rest in ("", "/")
        if is_rpc and request.method != "POST":
            return method_not_allowed(request, ["POST"])
        with begin_request_span(self._traces, request.scope, f"{PREFIX}{address.kind}/{{name}}") as segment:
            caller = self._caller(request, segment.trace)
            self._incoming.begin(request)
            if is_rpc:
                response = await self._rpc.respond(request, publication, caller)
            else:
                response = await self._http.respond(request, publication, caller, address.rest)
            await self._incoming.end(request, response)
        active = active_extensions(request)
        if active:
            response.headers["A2A-Extensions"] = ", ".join(active)
        return response

    def _caller(self, request: Request, trace: TraceContext | None) -> Caller:
        name = caller_of(request.scope)
        return Caller(
            key_id=key_id_of(request.scope) or (ANONYMOUS if self._has_keys else ""),
            name=STARTED_BY if name is None else f"{STARTED_BY}:{name}",
            correlation_id=correlation_id_of(request.scope),
            trace=trace,
        )
