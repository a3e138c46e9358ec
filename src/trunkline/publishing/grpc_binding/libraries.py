"""
The libraries of the extra trunkline[grpc], as far as they are used, with types: they have none of their own.

The messages of A2A are those that the A2A project's SDK has generated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn, Protocol, TypeAlias, cast

from trunkline.errors import ConfigurationError
from trunkline.jsontypes import JsonObject

SERVICE = "A2AService"

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class ProtoMessage(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - the library's


class MessageClass(Protocol):
    def __call__(self) -> ProtoMessage: ...
    def FromString(self, data: bytes) -> ProtoMessage: ...  # noqa: N802 - the library's


class MethodDescriptor(Protocol):
    name: str
    input_type: object
    output_type: object
    server_streaming: bool


class ServiceDescriptor(Protocol):
    full_name: str
    methods: Sequence[MethodDescriptor]


class ServicerContext(Protocol):
    def invocation_metadata(self) -> Metadata | None: ...
    def peer(self) -> str: ...
    async def abort(
        self, code: object, details: str, trailing_metadata: tuple[tuple[str, str | bytes], ...]
    ) -> NoReturn: ...


class GrpcServer(Protocol):
    def add_generic_rpc_handlers(self, handlers: Sequence[object]) -> None: ...
    def add_insecure_port(self, address: str) -> int: ...
    def add_secure_port(self, address: str, credentials: object) -> int: ...
    def start(self) -> Awaitable[None]: ...
    def stop(self, grace: float | None) -> Awaitable[None]: ...


class _Aio(Protocol):
    def server(
        self, *, options: Sequence[tuple[str, int]], maximum_concurrent_rpcs: int | None
    ) -> GrpcServer: ...


class _Grpc(Protocol):
    StatusCode: Mapping[str, object]

    def unary_unary_rpc_method_handler(
        self,
        behavior: object,
        request_deserializer: Callable[[bytes], ProtoMessage],
        response_serializer: Callable[[ProtoMessage], bytes],
    ) -> object: ...
    def unary_stream_rpc_method_handler(
        self,
        behavior: object,
        request_deserializer: Callable[[bytes], ProtoMessage],
        response_serializer: Callable[[ProtoMessage], bytes],
    ) -> object: ...
    def method_handlers_generic_handler(self, service: str, handlers: Mapping[str, object]) -> object: ...
    def ssl_server_certificate_configuration(self, pairs: Sequence[tuple[bytes, bytes]]) -> object: ...
    def dynamic_ssl_server_credentials(
        self, initial: object, fetcher: Callable[[], object | None]
    ) -> object: ...


class _JsonFormat(Protocol):
    def MessageToDict(self, message: ProtoMessage) -> JsonObject: ...  # noqa: N802 - the library's
    def ParseDict(  # noqa: N802 - the library's
        self, fields: JsonObject, message: ProtoMessage, *, ignore_unknown_fields: bool
    ) -> ProtoMessage: ...


class Libraries:
    """Raises `ConfigurationError` if the extra is not installed."""

    def __init__(self) -> None:
        try:
            self.grpc = cast("_Grpc", import_module("grpc"))
            self.aio = cast("_Aio", import_module("grpc.aio"))
            self._messages = import_module("a2a.types.a2a_pb2")
            # Messages in error details are found by their names once they are imported.
            import_module("google.rpc.error_details_pb2")
            self.status: MessageClass = import_module("google.rpc.status_pb2").Status
        except ImportError as exc:
            raise ConfigurationError(
                f"TRUNKLINE_GRPC_PORT is set, but a library for gRPC is missing: {exc.name}.",
                fix="Install the extra: pip install 'trunkline[grpc]', or remove TRUNKLINE_GRPC_PORT.",
            ) from exc
        self.json = cast("_JsonFormat", import_module("google.protobuf.json_format"))
        self._class_of: Callable[[object], MessageClass] = import_module(
            "google.protobuf.message_factory"
        ).GetMessageClass

    @property
    def service(self) -> ServiceDescriptor:
        return cast("ServiceDescriptor", self._messages.DESCRIPTOR.services_by_name[SERVICE])

    def message_class(self, descriptor: object) -> MessageClass:
        return self._class_of(descriptor)

    def parse(self, fields: JsonObject, message_class: MessageClass) -> ProtoMessage:
        return self.json.ParseDict(fields, message_class(), ignore_unknown_fields=True)
