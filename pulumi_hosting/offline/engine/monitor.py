"""The ResourceMonitor service: registers and reads the resources of one program, and calls functions for
it.
"""

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import alias_pb2, callback_pb2, resource_pb2, resource_pb2_grpc

from ..errors import OfflineError, ProviderError
from ..model.goals import Alias, Goal
from ..model.property_values import (
    Properties,
    SecretValue,
    contains_unknowns,
    without_outputs,
    without_secrets,
)
from ..model.protobuf import WireFormat, from_struct, from_value, to_struct
from ..model.urns import is_provider, package_of, provider_id, provider_reference, provider_urn, urn_type
from .deployment import Deployment
from .durations import timeouts
from .step_runner import DeploymentClosed
from .transforms import Transforms

_FEATURES = {
    "secrets": resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    "resourceReferences": resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    "outputValues": resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    "aliasSpecs": resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    "replacementTrigger": resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    "deletedWith": resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    "replaceWith": resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    "transforms": resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
}
Answer = TypeVar("Answer")
_NOT_OFFLINE = "the offline engine does not support {}; run this program with Pulumi's own CLI"


@dataclass(frozen=True)
class StackInfo:
    """What a program may ask about the stack it deploys."""

    project: str
    stack: str
    organization: str
    config: Properties
    preview: bool
    parallel: int

    def plain_config(self) -> dict[str, str]:
        return {key: str(without_secrets(value)) for key, value in self.config.items()}

    def secret_keys(self) -> list[str]:
        return [key for key, value in self.config.items() if isinstance(value, SecretValue)]


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Serves one program. `finished` is set when the program has registered everything."""

    def __init__(self, deployment: Deployment, info: StackInfo) -> None:
        self._deployment = deployment
        self._info = info
        self.finished = threading.Event()
        self._shutdown = threading.Event()
        self._goals: dict[str, Goal] = {}
        self._component_providers: dict[str, dict[str, str]] = {}
        self._parents: dict[str, str] = {}
        self._default_providers: dict[tuple[str, str], str] = {}
        self._default_lock = threading.Lock()
        self._versions: dict[str, str] = {}
        """Of packages, by what the program calls them."""
        self._transforms = Transforms()

    def release(self) -> None:
        """Let the program end."""
        self._shutdown.set()

    # What the engine can do.

    def SupportsFeature(
        self, request: resource_pb2.SupportsFeatureRequest, context: object
    ) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in _FEATURES)

    def GetDeploymentInfo(self, request: object, context: object) -> resource_pb2.DeploymentInfo:
        info = self._info
        return resource_pb2.DeploymentInfo(
            project=info.project,
            stack=info.stack,
            organization=info.organization,
            config=info.plain_config(),
            configSecretKeys=info.secret_keys(),
            dryRun=info.preview,
            parallel=info.parallel,
            supportedFeatures=list(_FEATURES.values()),
        )

    def RegisterPackage(
        self, request: resource_pb2.RegisterPackageRequest, context: grpc.ServicerContext
    ) -> resource_pb2.RegisterPackageResponse:
        if request.HasField("parameterization") or request.HasField("extension"):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, _NOT_OFFLINE.format("parameterized packages"))
        ref = f"{request.name}@{request.version}"
        self._versions[ref] = request.version
        return resource_pb2.RegisterPackageResponse(ref=ref)

    def RegisterStackTransform(self, request: callback_pb2.Callback, context: object) -> empty_pb2.Empty:
        self._transforms.add(request)
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, request: object, context: object) -> empty_pb2.Empty:
        self.finished.set()
        self._shutdown.wait()
        return empty_pb2.Empty()

    # Registrations.

    def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest, context: grpc.ServicerContext
    ) -> resource_pb2.RegisterResourceResponse:
        return self._answer(context, lambda: self._register(request))

    def ReadResource(
        self, request: resource_pb2.ReadResourceRequest, context: grpc.ServicerContext
    ) -> resource_pb2.ReadResourceResponse:
        return self._answer(context, lambda: self._read(request))

    def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        def store() -> empty_pb2.Empty:
            self._deployment.register_outputs(request.urn, _declared(request.outputs))
            return empty_pb2.Empty()

        return self._answer(context, store)

    def Invoke(
        self, request: resource_pb2.ResourceInvokeRequest, context: grpc.ServicerContext
    ) -> resource_pb2.ResourceInvokeResponse:
        return self._answer(context, lambda: self._invoke(request))

    def _answer(self, context: grpc.ServicerContext, serve: Callable[[], Answer]) -> Answer:
        try:
            return serve()
        except DeploymentClosed:
            context.abort(grpc.StatusCode.UNAVAILABLE, "resource monitor shut down")
        except _Unsupported as error:
            self._deployment.error(str(error))
            self._deployment.steps.fail()
            context.abort(grpc.StatusCode.UNAVAILABLE, "resource monitor shut down")
        except OfflineError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    def _register(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        if request.remote:
            raise _Unsupported(_NOT_OFFLINE.format("components that live in a plugin"))
        _inherit(request, self._goals.get(request.parent))
        request.aliases.extend(alias_pb2.Alias(urn=urn) for urn in request.aliasURNs)
        self._transforms.apply(request, self._ancestors(request.parent))
        if any(names for _, names in request.hooks.ListFields()):
            raise _Unsupported(_NOT_OFFLINE.format("resource hooks"))
        goal = self._goal(request)
        registered = self._deployment.register(goal)
        state = registered.state
        self._goals[state.urn] = goal
        self._parents[state.urn] = goal.parent
        self._transforms.registered(state.urn, request)
        if not goal.custom:
            self._component_providers[state.urn] = dict(request.providers)
        outputs = state.outputs if goal.custom else {}
        if not request.supportsPartialValues:
            outputs = {key: value for key, value in outputs.items() if not contains_unknowns(value)}
        return resource_pb2.RegisterResourceResponse(
            urn=state.urn,
            id=state.id,
            object=to_struct(
                outputs, WireFormat(secrets=request.acceptSecrets, resources=request.acceptResources)
            ),
            result=resource_pb2.SUCCESS,
            unknown=registered.unknown,
        )

    def _ancestors(self, urn: str) -> Iterator[str]:
        while urn:
            yield urn
            urn = self._parents.get(urn, "")

    def _goal(self, request: resource_pb2.RegisterResourceRequest) -> Goal:
        dependencies = sorted(set(request.dependencies))
        properties = _declared(request.object)
        if request.propertyDependencies:
            property_dependencies = {
                key: sorted(set(item.urns)) for key, item in request.propertyDependencies.items()
            }
        else:
            property_dependencies = dict.fromkeys(properties, dependencies)
        provider = ""
        if request.custom and not is_provider(request.type):
            provider = self._provider(request)
        elif is_provider(request.type) and request.version:
            properties["version"] = request.version
        return Goal(
            type=request.type,
            name=request.name,
            custom=request.custom,
            properties=properties,
            parent=request.parent,
            protect=request.protect if request.HasField("protect") else None,
            dependencies=dependencies,
            provider=provider,
            property_dependencies=property_dependencies,
            delete_before_replace=request.deleteBeforeReplace
            if request.deleteBeforeReplaceDefined or request.deleteBeforeReplace
            else None,
            ignore_changes=list(request.ignoreChanges),
            additional_secret_outputs=list(request.additionalSecretOutputs),
            aliases=[_alias(item) for item in request.aliases],
            import_id=request.importId,
            custom_timeouts=timeouts(request.customTimeouts),
            replace_on_changes=list(request.replaceOnChanges),
            replacement_trigger=from_value(request.replacement_trigger)
            if request.HasField("replacement_trigger")
            else None,
            retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
            deleted_with=request.deletedWith,
            replace_with=list(request.replace_with),
            hide_diff=list(request.hideDiffs),
        )

    def _provider(
        self, request: resource_pb2.RegisterResourceRequest | resource_pb2.ReadResourceRequest
    ) -> str:
        """The provider of a resource: given, its parents', or the default one of its package."""
        package = package_of(request.type)
        given: str = request.provider or getattr(request, "providers", {}).get(package, "")
        parent = request.parent
        inherited = self._goals[parent].provider if parent in self._goals else ""
        if not given and inherited and package_of(urn_type(provider_urn(inherited))) == package:
            return inherited
        for ancestor in self._ancestors(request.parent):
            given = given or self._component_providers.get(ancestor, {}).get(package, "")
        version = request.version or self._versions.get(request.packageRef, "")
        return given or self._default_provider(package, version)

    def _default_provider(self, package: str, version: str) -> str:
        with self._default_lock:
            ref = self._default_providers.get((package, version))
            if ref is None:
                name = f"default_{re.sub('[^0-9A-Za-z]', '_', version)}" if version else "default"
                inputs = self._deployment.package_config(package) | ({"version": version} if version else {})
                registered = self._deployment.register(
                    Goal(f"pulumi:providers:{package}", name, custom=True, properties=inputs)
                )
                ref = provider_reference(registered.state.urn, registered.state.id)
                self._default_providers[package, version] = ref
            return ref

    def _read(self, request: resource_pb2.ReadResourceRequest) -> resource_pb2.ReadResourceResponse:
        goal = Goal(
            request.type,
            request.name,
            custom=True,
            id=request.id,
            properties=_declared(request.properties),
            parent=request.parent,
            provider=self._provider(request),
            dependencies=sorted(set(request.dependencies)),
            additional_secret_outputs=list(request.additionalSecretOutputs),
        )
        state = self._deployment.read(goal)
        return resource_pb2.ReadResourceResponse(
            urn=state.urn,
            properties=to_struct(
                state.outputs, WireFormat(secrets=request.acceptSecrets, resources=request.acceptResources)
            ),
        )

    def _invoke(self, request: resource_pb2.ResourceInvokeRequest) -> resource_pb2.ResourceInvokeResponse:
        package = package_of(request.tok)
        if package == "pulumi":
            raise _Unsupported(_NOT_OFFLINE.format("stack references"))
        ref = request.provider or self._default_provider(package, request.version)
        provider = self._deployment.registry.get(ref)
        if provider is None:
            raise ProviderError(f"unknown provider {provider_urn(ref)} ({provider_id(ref)})")
        args = _declared(request.args)
        if contains_unknowns(args):
            return resource_pb2.ResourceInvokeResponse(unknown=True)
        result = provider.invoke(request.tok, args, preview=self._info.preview)
        answer = resource_pb2.ResourceInvokeResponse(failures=result.failures)
        getattr(answer, "return").CopyFrom(
            to_struct(result.inputs, WireFormat(secrets=True, resources=request.acceptResources))
        )
        return answer


class _Unsupported(Exception):
    pass


def _inherit(request: resource_pb2.RegisterResourceRequest, parent: Goal | None) -> None:
    """What a resource does not say of itself, its parent says."""
    if parent is None:
        return
    if parent.protect is not None and not request.HasField("protect"):
        request.protect = parent.protect
    if parent.retain_on_delete is not None and not request.HasField("retainOnDelete"):
        request.retainOnDelete = parent.retain_on_delete
    request.deletedWith = request.deletedWith or parent.deleted_with


def _declared(struct: struct_pb2.Struct) -> Properties:
    """Properties as a program sent them, plain values in place of outputs."""
    return {key: without_outputs(value) for key, value in from_struct(struct, keep_null=False).items()}


def _alias(item: alias_pb2.Alias) -> Alias:
    if item.WhichOneof("alias") == "urn":
        return Alias(urn=item.urn)
    spec = item.spec
    return Alias("", spec.name, spec.type, spec.stack, spec.project, spec.parentUrn, spec.noParent)


def add_monitor(monitor: Monitor) -> Callable[[grpc.Server], None]:
    return lambda server: resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
