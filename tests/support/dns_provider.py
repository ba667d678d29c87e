"""A stand-in for the plugin ``pulumi-resource-hcloud``: zones and records in a file, ``DNS_RECORDS``.
``python -m tests.support.dns_provider`` serves it as an engine expects.
"""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

NAME_SERVERS = ["helium.ns.example.", "hydrogen.ns.example."]
"""Of each zone, as such services write them: with the dot at the end."""
Held = dict[str, dict[str, Any]]
"""Id → properties of what is there."""


def held() -> Held:
    path = Path(os.environ["DNS_RECORDS"])
    found: Held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


class Dns(provider_pb2_grpc.ResourceProviderServicer):
    _lock = threading.Lock()

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.ConfigureResponse()

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        answers = provider_pb2.DiffResponse
        is_same = request.old_inputs == request.news
        return answers(changes=answers.DIFF_NONE if is_same else answers.DIFF_SOME)

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        made, outputs = MessageToDict(request.properties), struct_pb2.Struct()
        if request.urn.split("::")[2].endswith("Zone"):
            made["authoritativeNameservers"] = {"assigneds": NAME_SERVERS}
        outputs.update(made)
        id = f"{made.get('zone', 'zone')}/{made['name']}"
        self._write(lambda there: there | {id: made})
        return provider_pb2.CreateResponse(id=id, properties=outputs)

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._write(lambda there: {id: found for id, found in there.items() if id != request.id})
        return empty_pb2.Empty()

    def _write(self, change: Any) -> None:
        with self._lock:
            Path(os.environ["DNS_RECORDS"]).write_text(json.dumps(change(held())), encoding="utf-8")

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version="1.43.3")


def main() -> None:
    server = grpc.server(ThreadPoolExecutor(4))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Dns(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
