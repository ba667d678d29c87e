"""The ResourceMonitor service: registers and reads the resources of one program, and calls functions for
it.
"""

import re
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import callback_pb2, resource_pb2_grpc
from pulumi.runtime.proto import resource_pb2 as pb

from ..errors import OfflineError, ProviderError
from ..model.goals import Goal
from ..model.property_values import (
    Properties,
    SecretValue,
    WireFormat,
    contains_unknowns,
    from_struct,
    from_value,
    to_struct,
    without_secrets,
)
from ..model.state import ResourceState
from ..model.urns import is_provider, package_of, provider_id, provider_reference, provider_urn, urn_type
from ..storage.stack_store import ORGANIZATION
from .deployment import Deployment
from .step_runner import DeploymentClosed
from .transforms import Transforms

_FEATURES = {
    "secrets": pb.RESOURCE_MONITOR_FEATURE_SECRETS,
    "resourceReferences": pb.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    "outputValues": pb.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    "aliasSpecs": pb.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    "replacementTrigger": pb.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    "deletedWith": pb.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    "replaceWith": pb.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    "transforms": pb.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
_ResourceRequest = pb.RegisterResourceRequest | pb.ReadResourceRequest
_NOT_OFFLINE = "the offline engine does not support {}; run this program with Pulumi's own CLI"


def _served(
    serve: Callable[["Monitor", Asked], Answer],
) -> Callable[["Monitor", Asked, grpc.ServicerContext], Answer]:
    """The method as gRPC calls it, with errors as the SDK expects them."""

    def answer(monitor: "Monitor", request: Asked, context: grpc.ServicerContext) -> Answer:
        try:
            return serve(monitor, request)
        except DeploymentClosed:
            context.abort(grpc.StatusCode.UNAVAILABLE, "resource monitor shut down")
        except OfflineError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    return answer


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Serves one program. `finished` is set when the program has registered everything."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self.finished = threading.Event()
        self._shutdown = threading.Event()
        self._requests: dict[str, pb.RegisterResourceRequest] = {}
        """What was registered, by URN, with what it inherits and its provider."""
        self._default_providers: dict[tuple[str, str], str] = {}
        self._default_lock = threading.Lock()
        self._transforms = Transforms()

    def release(self) -> None:
        """Let the program end."""
        self._shutdown.set()

    def _refuse(self, what: str) -> NoReturn:
        """End the operation: only Pulumi's own CLI has what the program needs."""
        self._deployment.error(_NOT_OFFLINE.format(what))
        self._deployment.steps.fail()
        raise DeploymentClosed

    # What the engine can do.

    def SupportsFeature(
        self, request: pb.SupportsFeatureRequest, context: object
    ) -> pb.SupportsFeatureResponse:
        return pb.SupportsFeatureResponse(hasSupport=request.id in _FEATURES)

    def info(self) -> pb.DeploymentInfo:
        """What a program may ask about the stack it deploys."""
        deployment = self._deployment
        config = deployment.config
        return pb.DeploymentInfo(
            project=deployment.project,
            stack=deployment.stack,
            organization=ORGANIZATION,
            config={key: str(without_secrets(value)) for key, value in config.items()},
            configSecretKeys=[key for key, value in config.items() if isinstance(value, SecretValue)],
            dryRun=deployment.options.preview,
            parallel=deployment.options.at_a_time,
            supportedFeatures=list(_FEATURES.values()),
        )

    def GetDeploymentInfo(self, request: object, context: object) -> pb.DeploymentInfo:
        return self.info()

    def RegisterPackage(
        self, request: pb.RegisterPackageRequest, context: grpc.ServicerContext
    ) -> pb.RegisterPackageResponse:
        if request.HasField("parameterization") or request.HasField("extension"):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, _NOT_OFFLINE.format("parameterized packages"))
        return pb.RegisterPackageResponse(ref=f"{request.name}@{request.version}")

    def RegisterStackTransform(self, request: callback_pb2.Callback, context: object) -> empty_pb2.Empty:
        self._transforms.add(request)
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, request: object, context: object) -> empty_pb2.Empty:
        self.finished.set()
        self._shutdown.wait()
        return empty_pb2.Empty()

    # Registrations.

    @_served
    def RegisterResource(self, request: pb.RegisterResourceRequest) -> pb.RegisterResourceResponse:
        if request.remote:
            self._refuse("components that live in a plugin")
        _inherit(request, self._requests.get(request.parent))
        self._transforms.apply(request, self._ancestors(request.parent))
        if any(names for _, names in request.hooks.ListFields()):
            self._refuse("resource hooks")
        registered = self._deployment.register(self._goal(request))
        state = registered.state
        self._requests[state.urn] = request
        self._transforms.registered(state.urn, request)
        return pb.RegisterResourceResponse(
            urn=state.urn,
            id=state.id,
            object=_answered(state.outputs if request.custom else {}, request),
            result=pb.SUCCESS,
            unknown=registered.unknown,
        )

    @_served
    def ReadResource(self, request: pb.ReadResourceRequest) -> pb.ReadResourceResponse:
        declared = ResourceState(
            "",
            request.type,
            custom=True,
            id=request.id,
            inputs=_declared(request.properties),
            parent=request.parent,
            provider=self._provider(request),
            dependencies=sorted(set(request.dependencies)),
            additional_secret_outputs=list(request.additionalSecretOutputs),
        )
        state = self._deployment.read(Goal(declared, request.name))
        return pb.ReadResourceResponse(urn=state.urn, properties=_answered(state.outputs, request))

    @_served
    def RegisterResourceOutputs(self, request: pb.RegisterResourceOutputsRequest) -> empty_pb2.Empty:
        self._deployment.register_outputs(request.urn, _declared(request.outputs))
        return empty_pb2.Empty()

    @_served
    def Invoke(self, request: pb.ResourceInvokeRequest) -> pb.ResourceInvokeResponse:
        package = package_of(request.tok)
        if package == "pulumi":
            self._refuse("stack references")
        ref = request.provider or self._default_provider(package, request.version)
        provider = self._deployment.registry.get(ref)
        if provider is None:
            raise ProviderError(f"unknown provider {provider_urn(ref)} ({provider_id(ref)})")
        args = _declared(request.args)
        if contains_unknowns(args):
            return pb.ResourceInvokeResponse(unknown=True)
        result = provider.invoke(request.tok, args, preview=self._deployment.preview)
        answer = pb.ResourceInvokeResponse(failures=result.failures)
        getattr(answer, "return").CopyFrom(
            to_struct(result.inputs, WireFormat(secrets=True, resources=request.acceptResources))
        )
        return answer

    def _ancestors(self, urn: str) -> Iterator[str]:
        while urn:
            yield urn
            urn = self._requests[urn].parent if urn in self._requests else ""

    def _goal(self, request: pb.RegisterResourceRequest) -> Goal:
        dependencies = sorted(set(request.dependencies))
        properties = _declared(request.object)
        given = {key: sorted(set(item.urns)) for key, item in request.propertyDependencies.items()}
        # As in Pulumi, the version of a provider depends on nothing.
        property_dependencies = given or dict.fromkeys(properties, dependencies)
        provider = ""
        if is_provider(request.type):
            if request.version:
                properties["version"] = request.version
        elif request.custom:
            provider = self._provider(request)
        request.provider = provider
        declared = ResourceState(
            "",
            request.type,
            custom=request.custom,
            inputs=properties,
            parent=request.parent,
            protect=request.protect,
            dependencies=dependencies,
            provider=provider,
            property_dependencies=property_dependencies,
            ignore_changes=list(request.ignoreChanges),
            additional_secret_outputs=list(request.additionalSecretOutputs),
            import_id=request.importId,
            custom_timeouts=_timeouts(request.customTimeouts),
            replace_on_changes=list(request.replaceOnChanges),
            replacement_trigger=from_value(request.replacement_trigger)
            if request.HasField("replacement_trigger")
            else None,
            retain_on_delete=request.retainOnDelete,
            deleted_with=request.deletedWith,
            replace_with=list(request.replace_with),
            hide_diff=list(request.hideDiffs),
        )
        says = request.deleteBeforeReplaceDefined or request.deleteBeforeReplace
        return Goal(declared, request.name, request.aliases, request.deleteBeforeReplace if says else None)

    def _provider(self, request: _ResourceRequest) -> str:
        """The provider of a resource: given, its parents', or the default one of its package."""
        package = package_of(request.type)
        given: str = request.provider or getattr(request, "providers", {}).get(package, "")
        parent = self._requests.get(request.parent)
        inherited = parent.provider if parent else ""
        if not given and inherited and package_of(urn_type(provider_urn(inherited))) == package:
            return inherited
        for ancestor in self._ancestors(request.parent):
            known = self._requests.get(ancestor)
            if known is not None and not known.custom:
                given = given or known.providers.get(package, "")
        version = request.version or request.packageRef.rpartition("@")[2]
        return given or self._default_provider(package, version)

    def _default_provider(self, package: str, version: str) -> str:
        with self._default_lock:
            ref = self._default_providers.get((package, version))
            if ref is None:
                name = f"default_{re.sub('[^0-9A-Za-z]', '_', version)}" if version else "default"
                inputs = self._deployment.package_config(package) | ({"version": version} if version else {})
                declared = ResourceState("", f"pulumi:providers:{package}", custom=True, inputs=inputs)
                registered = self._deployment.register(Goal(declared, name))
                ref = provider_reference(registered.state.urn, registered.state.id)
                self._default_providers[package, version] = ref
            return ref


def _inherit(request: pb.RegisterResourceRequest, parent: pb.RegisterResourceRequest | None) -> None:
    """What a resource does not say of itself, its parent says."""
    if parent is None:
        return
    if parent.HasField("protect") and not request.HasField("protect"):
        request.protect = parent.protect
    if parent.HasField("retainOnDelete") and not request.HasField("retainOnDelete"):
        request.retainOnDelete = parent.retainOnDelete
    request.deletedWith = request.deletedWith or parent.deletedWith


def _declared(struct: struct_pb2.Struct) -> Properties:
    """Properties as a program sent them."""
    return from_struct(struct, keep_null=False)


def _answered(outputs: Properties, request: _ResourceRequest) -> struct_pb2.Struct:
    return to_struct(outputs, WireFormat(secrets=request.acceptSecrets, resources=request.acceptResources))


def _timeouts(message: pb.RegisterResourceRequest.CustomTimeouts) -> dict[str, float]:
    """The `customTimeouts` of a registration, in seconds."""
    return {
        name: seconds(text)
        for name in ("create", "update", "delete", "read")
        if (text := getattr(message, name))
    }


def seconds(text: str) -> float:
    """A duration as Pulumi writes it (`90s`, `1h30m`), in seconds. Raises `ProviderError`."""
    parts = _DURATION.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise ProviderError(f"unable to parse customTimeout value {text!r}; write it like 90s, 10m or 1h30m")
    total = sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    return int(total) if total == int(total) else total
