"""The toy service's native provider: `pulumi-resource-toy`."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2, empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2
from pulumi.runtime.rpc import _special_secret_sig as SECRET
from pulumi.runtime.rpc import _special_sig_key as SIGNATURE

from toykit import service

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
Json = dict[str, Any]


def shown(value: Any) -> Any:
    """A received value as it is recorded."""
    if isinstance(value, struct_pb2.Struct):
        value = MessageToDict(value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return {"secret": shown(value["value"])}
        return {key: shown(item) for key, item in value.items()}
    return "<unknown>" if value == UNKNOWN else value


def decrypted(struct: struct_pb2.Struct) -> Json:
    """Received properties with their secrets in plain text."""
    received = MessageToDict(struct)
    return {
        key: value["value"] if isinstance(value, dict) and value.get(SIGNATURE) == SECRET else value
        for key, value in received.items()
    }


def response(properties: Json) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(
        {
            key: {SIGNATURE: SECRET, "value": value} if key == "secretOut" else value
            for key, value in properties.items()
        }
    )
    return struct


def refuse(context: grpc.ServicerContext, message: str) -> NoReturn:
    context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError


def half_done(
    context: grpc.ServicerContext,
    id: str,
    thing: Json,
    reason: str,
    *,
    refresh: bool,
    inputs: Json | None = None,
) -> NoReturn:
    """Something was done, but it is not ready."""
    failed = provider_pb2.ErrorResourceInitFailed(
        id=id, properties=response(thing), reasons=[reason], refresh_before_update=refresh
    )
    if inputs is not None:
        failed.inputs.CopyFrom(response(inputs))
    detail = any_pb2.Any()
    detail.Pack(failed)
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reason, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, reason)
    raise AssertionError


def faulty(context: grpc.ServicerContext, key: str) -> str:
    try:
        return service.fault(key)
    except RuntimeError as error:
        refuse(context, str(error))


class Toy(provider_pb2_grpc.ResourceProviderServicer):
    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log("CheckConfig", provider=request.name, news=shown(request.news))
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log("DiffConfig", provider=request.name, olds=shown(request.olds), news=shown(request.news))
        kinds = provider_pb2.DiffResponse
        changed = (
            decrypted(request.olds) != decrypted(request.news) and service.fault("diffconfig") != "blind"
        )
        return kinds(changes=kinds.DIFF_SOME if changed else kinds.DIFF_NONE)

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log("Configure", provider=request.name, args=decrypted(request.args))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=True, acceptOutputs=True
        )

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log("Check", name=request.name, olds=shown(request.olds), news=shown(request.news))
        failures = []
        if decrypted(request.news).get("name") == "bad":
            failures.append(provider_pb2.CheckFailure(property="name", reason="name must not be bad"))
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log(
            "Diff",
            name=request.name,
            id=request.id,
            olds=shown(request.olds),
            oldInputs=shown(request.old_inputs),
            news=shown(request.news),
            ignoreChanges=list(request.ignoreChanges),
        )
        olds, news = decrypted(request.olds), decrypted(request.news)
        answer = provider_pb2.DiffResponse(
            hasDetailedDiff=True, deleteBeforeReplace=news.get("note") == "dbr"
        )
        for key in service.INPUTS:
            if olds.get(key) != news.get(key):
                kind = "ADD" if key not in olds else "DELETE" if key not in news else "UPDATE"
                if key == "size":
                    kind += "_REPLACE"
                    answer.replaces.append(key)
                answer.diffs.append(key)
                answer.detailedDiff[key].kind = provider_pb2.PropertyDiff.Kind.Value(kind)
        answer.changes = (
            provider_pb2.DiffResponse.DIFF_SOME if answer.diffs else provider_pb2.DiffResponse.DIFF_NONE
        )
        return answer

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log(
            "Create",
            name=request.name,
            props=shown(request.properties),
            preview=request.preview,
            timeout=request.timeout,
        )
        props = decrypted(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(
                properties=response({**props, "status": "running", "price": "4.90"})
            )
        fault = faulty(context, f"create:{props['name']}")
        id, thing = service.create(props)
        if fault == "partial":
            half_done(context, id, thing, "still provisioning", refresh=False)
        if fault == "partial-refresh":
            half_done(context, f"order:{id}", thing, "still provisioning", refresh=True)
        return provider_pb2.CreateResponse(id=id, properties=response(thing))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log(
            "Read",
            name=request.name,
            id=request.id,
            props=shown(request.properties),
            inputs=shown(request.inputs),
        )
        id = request.id.removeprefix("order:")
        fault = faulty(context, f"read:{id}")
        thing = service.read(id)
        if thing is None:
            return provider_pb2.ReadResponse()
        inputs = {key: thing[key] for key in service.INPUTS if key in thing}
        if fault == "partial":
            half_done(context, request.id, thing, "still provisioning", refresh=True, inputs=inputs)
        return provider_pb2.ReadResponse(id=id, properties=response(thing), inputs=response(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log(
            "Update",
            name=request.name,
            id=request.id,
            olds=shown(request.olds),
            news=shown(request.news),
            preview=request.preview,
        )
        id = request.id.removeprefix("order:")
        news = decrypted(request.news)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=response({**decrypted(request.olds), **news}))
        fault = faulty(context, f"update:{id}")
        thing = service.update(id, news)
        if fault == "partial":
            half_done(context, request.id, thing, "half done", refresh=request.id != id)
        return provider_pb2.UpdateResponse(properties=response(thing))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log("Delete", name=request.name, id=request.id, props=shown(request.properties))
        id = request.id.removeprefix("order:")
        faulty(context, f"delete:{id}")
        service.delete(id)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        args = decrypted(request.args)
        if args.get("size") == "bad":
            return provider_pb2.InvokeResponse(
                failures=[provider_pb2.CheckFailure(property="size", reason="size must not be bad")]
            )
        answer = provider_pb2.InvokeResponse()
        getattr(answer, "return").CopyFrom(response({"price": "4.90", "size": args.get("size")}))
        return answer

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        service.log("Cancel")
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version="0.1.0")


def main(write: Callable[[str], Any] = sys.stdout.write) -> None:
    server = grpc.server(ThreadPoolExecutor(8))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Toy(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    write(f"{port}\n")
    sys.stdout.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.stop(0)


if __name__ == "__main__":
    main()
