"""One request of the engine about a resource: what its URN names, its adapter, its properties."""

from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import TypeVar

import grpc
from google.protobuf import any_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.failures import StepFailed, as_user_error, fail
from pulumi_hosting.provider.names import (
    IDENTITY,
    NAME,
    ORGANIZATION,
    PropertyValues,
    Props,
    camel,
    class_of,
    identity_of,
    token,
)
from pulumi_hosting.provider.partial_failure import PartialFailure
from pulumi_hosting.provider.plugin.engine_log import EngineConnection
from pulumi_hosting.provider.plugin.marshal import Properties, marshal
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import AnyResource

_KINDS: Mapping[str, str] = {token(class_of(kind)): kind for kind in RESOURCES}


def resource_of(urn: str) -> AnyResource:
    """That of the type in ``urn:pulumi:<stack>::<project>::<parents' types$type>::<name>``."""
    type = urn.split("::")[2].rpartition("$")[2] if urn.count("::") >= 3 else urn
    kind = _KINDS.get(type)
    if kind is None:
        fail(
            f"there is no resource {clean_text(type, 80)} in {NAME}. Next: correct the type, one of "
            f"{', '.join(sorted(_KINDS))}"
        )
    return RESOURCES[kind]


class InitFailed(Exception):
    """Something exists that is not ready yet: the engine saves it, and the next run goes on."""

    def __init__(self, detail: provider_pb2.ErrorResourceInitFailed) -> None:
        super().__init__("; ".join(detail.reasons))
        self.detail = detail

    def status(self) -> bytes:
        """The details that accompany the error."""
        detail = any_pb2.Any()
        detail.Pack(self.detail)
        # Pulumi's own Status: google.rpc's is a second symbol of that name, which ends the process.
        code: int = grpc.StatusCode.UNKNOWN.value[0]
        status: bytes = status_pb2.Status(code=code, message=str(self), details=[detail]).SerializeToString()
        return status


class ResourceCall:
    """The properties of a request go to ``adapter`` with the identity of the resource; what the adapter
    returns is marshalled, and what was secret in the request stays so.

    - ``declared``: the inputs, ``recorded``: the outputs of before, if the request has any. A renamed
      resource keeps the recorded identity, since its object's tag is made of it.
    - ``received``: the properties from which secrets and organization are kept.
    - ``timeout``: the custom timeout of the step, in seconds.
    """

    def __init__(
        self,
        session: ProviderSession,
        engine: EngineConnection,
        urn: str,
        *received: Properties,
        declared: PropertyValues,
        recorded: PropertyValues | None = None,
        timeout: float = 0.0,
    ) -> None:
        self.resource, self.name = resource_of(urn), urn.split("::", 3)[3]
        organization = declared.get(ORGANIZATION)
        self.declared_identity = session.identity(
            identity_of(urn, self.resource.kind), organization if isinstance(organization, str) else None
        )
        self.identity = str((recorded or {}).get(IDENTITY) or self.declared_identity)
        self._secrets = _always_secret(self.resource).union(*(part.secrets for part in received))
        organizations = [part.values[ORGANIZATION] for part in received if part.values.get(ORGANIZATION)]
        self._organization = {ORGANIZATION: organizations[-1]} if organizations else {}
        known = f"{self.name}: "  # the engine shows the name beside the line
        self.adapter = Adapter(
            self.resource,
            session,
            info=lambda line: engine.info(urn, line.removeprefix(known)),
            warn=lambda line: engine.warn(urn, line.removeprefix(known)),
            ids_may_change=True,
            urn=urn,
            timeout=timeout or None,
        )

    def with_identity(self, values: PropertyValues) -> Props:
        """For the adapter."""
        return {**values, IDENTITY: self.identity}

    def with_write_only(self, declared: PropertyValues, recorded: PropertyValues) -> Props:
        """The recorded values, with what the API never shows as it was declared last: an engine that found
        no difference recorded it among the inputs only.
        """
        inputs = self.resource.Inputs
        names = [camel(name) for name in inputs.model_fields if inputs.trait(name).write_only]
        shown = {name: declared[name] for name in names if declared.get(name) is not None}
        return self.with_identity({**shown, **recorded})

    def outputs(self, values: PropertyValues) -> Struct:
        return marshal(self.with_identity(values), self._secrets)

    def inputs(self, values: PropertyValues) -> Struct:
        return marshal({**program_inputs(values), **self._organization}, self._secrets)

    def init_failed(self, failure: PartialFailure) -> InitFailed:
        detail = provider_pb2.ErrorResourceInitFailed(
            id=failure.id,
            properties=self.outputs(failure.outputs),
            reasons=[" ".join(reason.split()) for reason in failure.reasons],
            refresh_before_update=failure.refresh,
        )
        if failure.inputs is not None:
            detail.inputs.CopyFrom(self.inputs(failure.inputs))
        return InitFailed(detail)


@cache
def _always_secret(resource: AnyResource) -> frozenset[str]:
    """Keys that are secret whatever the program says."""
    return frozenset(map(camel, resource.State.secret_fields() | resource.Inputs.secret_fields()))


def program_inputs(values: PropertyValues) -> Props:
    """Without the provider's own keys."""
    return {key: value for key, value in values.items() if not key.startswith("__")}


# --- how a method of the plugin fails


Servicer = TypeVar("Servicer")


def reports_errors(servicer: type[Servicer]) -> type[Servicer]:
    """Have the errors of its methods end as one line for the engine; grpc would print a traceback."""
    for name in vars(servicer).keys() & vars(provider_pb2_grpc.ResourceProviderServicer).keys():
        if not name.startswith("__"):
            setattr(servicer, name, _reporting(vars(servicer)[name]))
    return servicer


def _reporting(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def reporting(self: object, request: object, context: grpc.ServicerContext) -> object:
        code = grpc.StatusCode.UNKNOWN
        try:
            with as_user_error(InitFailed, NotImplementedError):
                return method(self, request, context)
        except StepFailed as error:
            line = str(error)
        except NotImplementedError as error:
            code, line = grpc.StatusCode.UNIMPLEMENTED, str(error)
        except InitFailed as error:
            line = str(error)
            context.set_trailing_metadata((("grpc-status-details-bin", error.status()),))
        context.abort(code, line)

    return reporting
