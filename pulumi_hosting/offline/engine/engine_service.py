"""The Engine service: takes the log of programs and providers, and keeps the root resource."""

from collections.abc import Callable

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2 as pb
from pulumi.runtime.proto import engine_pb2_grpc


class EngineService(engine_pb2_grpc.EngineServicer):
    """`log` takes severity, message, URN and whether the message is ephemeral."""

    def __init__(self, log: Callable[[str, str, str, bool], None]) -> None:
        self._log = log
        self._root = ""

    def Log(self, request: pb.LogRequest, context: object) -> empty_pb2.Empty:
        severity = pb.LogSeverity.Name(request.severity).lower()
        self._log(severity, request.message, request.urn, request.ephemeral)
        return empty_pb2.Empty()

    def GetRootResource(self, request: object, context: object) -> pb.GetRootResourceResponse:
        return pb.GetRootResourceResponse(urn=self._root)

    def SetRootResource(
        self, request: pb.SetRootResourceRequest, context: object
    ) -> pb.SetRootResourceResponse:
        self._root = request.urn
        return pb.SetRootResourceResponse()

    def RequirePulumiVersion(self, request: object, context: object) -> pb.RequirePulumiVersionResponse:
        return pb.RequirePulumiVersionResponse()


def add_engine(engine: EngineService) -> Callable[[grpc.Server], None]:
    return lambda server: engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
