"""The plugin in this process, asked over gRPC as the engine asks it."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import (
    engine_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from pulumi_hosting.provider.plugin.marshal import marshal, unmarshal
from pulumi_hosting.provider.plugin.servicer import Plugin, serve
from pulumi_hosting.rehearsal.control_client import Control

SERVER = "urn:pulumi:dev::toys::hosting:index:Server::web"


KEY = "urn:pulumi:dev::toys::hosting:index:SshKey::me"


WEB = {"tariffId": 1, "os": "debian-12"}


SLOW = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}


NOT_AT_ALL = 1e-9  # seconds: as long as it takes to ask once


class Engine(engine_pb2_grpc.EngineServicer):
    """The engine's side: what plugins say to people arrives here."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.heard = threading.Event()
        self.awaited = "nothing"

    def Log(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.lines.append(request)
        if self.awaited in request.message:
            self.heard.set()
        return empty_pb2.Empty()


class Refused(Exception):
    """An error of the plugin; ``partial``: what it says exists nevertheless."""

    def __init__(self, error: grpc.RpcError) -> None:
        self.message = error.details() or ""
        self.code = error.code()
        self.partial: Any = None
        metadata: Any = error.trailing_metadata() or ()
        for key, value in metadata:
            if key == "grpc-status-details-bin":
                (detail,) = status_pb2.Status.FromString(value).details
                self.partial = provider_pb2.ErrorResourceInitFailed()
                assert detail.Unpack(self.partial)
        super().__init__(self.message)


@dataclass
class Asked:
    """A plugin and the wire to it."""

    stub: provider_pb2_grpc.ResourceProviderStub
    engine: Engine
    control: Control
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, method: str, request: Any) -> Any:
        try:
            return getattr(self.stub, method)(request)
        except grpc.RpcError as error:
            raise Refused(error) from None

    def configure(self, name: str = "default", **settings: Any) -> None:
        urn = f"urn:pulumi:dev::toys::pulumi:providers:hosting::{name}"
        self(
            "Configure",
            provider_pb2.ConfigureRequest(
                urn=urn, name=name, args=marshal({**self.settings, **settings}, {"apiKey"})
            ),
        )

    def check(
        self,
        urn: str,
        news: dict[str, Any],
        olds: dict[str, Any] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> Any:
        name = urn.rsplit("::", 1)[1]
        return self(
            "Check",
            provider_pb2.CheckRequest(
                urn=urn, name=name, olds=marshal(olds or {}), news=marshal(news, secrets)
            ),
        )

    def inputs(self, urn: str, news: dict[str, Any], olds: dict[str, Any] | None = None) -> Struct:
        answer = self.check(urn, news, olds)
        assert not answer.failures
        inputs: Struct = answer.inputs
        return inputs

    def create(self, urn: str, inputs: Struct, **rest: Any) -> Any:
        return self("Create", provider_pb2.CreateRequest(urn=urn, properties=inputs, **rest))

    def diff(self, urn: str, id: str, olds: Struct, news: Struct) -> Any:
        return self("Diff", provider_pb2.DiffRequest(urn=urn, id=id, olds=olds, news=news))

    def update(self, urn: str, id: str, olds: Struct, news: Struct, **rest: Any) -> Any:
        return self("Update", provider_pb2.UpdateRequest(urn=urn, id=id, olds=olds, news=news, **rest))

    def read(
        self, urn: str, id: str, outputs: Struct | None = None, inputs: Struct | None = None, **rest: Any
    ) -> Any:
        return self(
            "Read",
            provider_pb2.ReadRequest(
                urn=urn, id=id, properties=outputs or Struct(), inputs=inputs or Struct(), **rest
            ),
        )

    def delete(self, urn: str, id: str, outputs: Struct, **rest: Any) -> None:
        self("Delete", provider_pb2.DeleteRequest(urn=urn, id=id, properties=outputs, **rest))

    def made(self, urn: str = SERVER, news: dict[str, Any] | None = None) -> tuple[Struct, str, Struct]:
        inputs = self.inputs(urn, news or WEB)
        answer = self.create(urn, inputs)
        return inputs, answer.id, answer.properties


@contextlib.contextmanager
def asked(emulator: Any) -> Iterator[Asked]:
    engine = Engine()
    engine_server = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, engine_server)
    address = f"127.0.0.1:{engine_server.add_insecure_port('127.0.0.1:0')}"
    engine_server.start()
    plugin = Plugin()
    server, port = serve(plugin)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        settings = {"apiKey": emulator.live_key, "baseUrl": emulator.base_url}
        made = Asked(stub, engine, Control(emulator.control_url), settings)
        made("Handshake", provider_pb2.ProviderHandshakeRequest(engine_address=address))
        made.configure()
        yield made
        plugin.end()
        server.stop(None).wait()
    plugin.engine.close()
    engine_server.stop(None).wait()
    plugin.session.client.close()


def reseen(struct: Struct, **changes: Any) -> Struct:
    """The same properties, some changed, the same ones secret."""
    received = unmarshal(struct)
    return marshal({**received.values, **changes}, received.secrets)
