"""Calls of a coordinator from Python, by its own description of them (reflection), with a token."""

from typing import Any

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]


class Authorized(grpc.StreamStreamClientInterceptor):
    """Puts the token on calls of reflection."""

    def __init__(self, metadata: list[tuple[str, str]]):
        self.metadata = metadata

    def intercept_stream_stream(self, go_on, details, requests):
        return go_on(details._replace(metadata=self.metadata), requests)


class Wire:
    """The messages of a coordinator, and calls with them on any number of channels."""

    def __init__(self, address: str, token: str):
        self.address, self.metadata = address, [("authorization", f"Bearer {token}")]
        described = grpc.intercept_channel(self.channel(), Authorized(self.metadata))
        self.pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(described))
        # All that is described, at once: threads that look for it at the same time would add it twice.
        for service in ("Workers", "Studies"):
            self.pool.FindServiceByName(f"regretta.v1.{service}")

    def channel(self) -> grpc.Channel:
        """A connection of its own."""
        return grpc.insecure_channel(self.address, OPTIONS)

    def aio_channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(self.address, OPTIONS)

    def message(self, name: str, /, **fields: Any):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(f"regretta.v1.{name}"))(**fields)

    def method(self, channel, service: str, name: str):
        """A call, of either kind of channel; the token is on it."""
        method = self.pool.FindServiceByName(f"regretta.v1.{service}").methods_by_name[name]
        kinds = ["stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming)]
        call = getattr(channel, "_".join(kinds))(
            f"/regretta.v1.{service}/{name}",
            request_serializer=message_factory.GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        return lambda request, **options: call(request, metadata=self.metadata, **options)

    def registration(self, name: str, version: str, numerics: str):
        return self.message("RegisterRequest", version=version, numerics_digest=numerics, name=name, slots=1)
