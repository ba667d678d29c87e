"""The native provider ``pulumi-resource-hosting``: a provider plugin over Pulumi's own protocol.

The servicer is thin: it opens the wire's values, asks the adapter, and closes what the adapter answers. What
it adds is what only the protocol knows: the URN (which names the declaration), previews, secrets, custom
timeouts, partial creations, and the engine's log.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, wraps
from queue import SimpleQueue
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.conversion import IDENTITY, MANAGED, ORGANIZATION, WAIT_TIMEOUT, camel
from pulumi_hosting.provider.failures import Failed, as_user_error, fail
from pulumi_hosting.provider.half_way import Partial
from pulumi_hosting.provider.names import NAME, class_of, token
from pulumi_hosting.provider.plugin.engine_log import Link, engine_address
from pulumi_hosting.provider.plugin.install import version
from pulumi_hosting.provider.plugin.marshal import Opened, closed, opened
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.provider.stack_settings import SETTINGS, failures_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import Resource

SECRET_SETTINGS = frozenset({"apiKey"})

_WORKERS = 128  # threads are made as they are needed; the engine asks as many at once as its --parallel says
_GRACE = 4.0  # seconds; the engine waits five before it kills
# as the engine's own
_MESSAGE_SIZE = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]

Props = dict[str, Any]
Method = Callable[[Any, Any, grpc.ServicerContext], Any]

_TYPES: Mapping[str, Resource[Any, Any]] = {
    token(class_of(kind)): resource for kind, resource in RESOURCES.items()
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The resource a request is about, as its URN names it: ``urn:pulumi:<stack>::<project>::<parents'
    types$type>::<name>``.
    """

    urn: str
    resource: Resource[Any, Any]

    @classmethod
    def of(cls, urn: str) -> "Subject":
        token = urn.split("::")[2].rpartition("$")[2] if urn.count("::") >= 3 else urn
        resource = _TYPES.get(token)
        if resource is None:
            fail(
                f"there is no resource {clean_text(token, 80)} in {NAME}. Next: correct the type, one of "
                f"{', '.join(sorted(_TYPES))}"
            )
        return cls(urn, resource)

    @property
    def name(self) -> str:
        return self.urn.split("::", 3)[3]

    @property
    def identity(self) -> str:
        """What names the resource: the same as for a dynamic resource, if it has no parent."""
        head, project, types, name = self.urn.split("::", 3)
        parents = types.rpartition("$")[0]
        family = f"{parents}/" if parents else ""
        return f"pulumi:{project}/{head.removeprefix('urn:pulumi:')}/{self.resource.kind}/{family}{name}"

    @property
    def secrets(self) -> frozenset[str]:
        """Keys that are secret whatever the program says."""
        return _secrets(self.resource)


@cache
def _secrets(resource: Resource[Any, Any]) -> frozenset[str]:
    return frozenset(map(camel, resource.State.secret_fields() | resource.Inputs.secret_fields()))


def _answering(method: Method) -> Method:
    """A step that fails ends as one line of the engine's; grpc would print a traceback."""

    @wraps(method)
    def answered(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            with as_user_error(_HalfDone):
                return method(self, request, context)
        except Failed as failed:
            line = str(failed)
        except _HalfDone as half:
            line = half.line
            context.set_trailing_metadata((("grpc-status-details-bin", half.status()),))
        return context.abort(grpc.StatusCode.UNKNOWN, line)

    return answered


class _HalfDone(Exception):
    """Something exists, but is not what was asked for yet: the engine saves it, and the next run goes on."""

    def __init__(self, detail: provider_pb2.ErrorResourceInitFailed) -> None:
        super().__init__()
        self.detail = detail

    @property
    def line(self) -> str:
        return "; ".join(self.detail.reasons)

    def status(self) -> bytes:
        detail = any_pb2.Any()
        detail.Pack(self.detail)
        # Pulumi's own Status: google.rpc's, in the same process, is a second symbol of one name, and kills
        # it.
        code: int = grpc.StatusCode.UNKNOWN.value[0]
        answer: bytes = status_pb2.Status(code=code, message=self.line, details=[detail]).SerializeToString()
        return answer


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """One provider instance: one configuration, one account. Serves any number of requests at once."""

    def __init__(self, link: Link | None = None) -> None:
        self.link = link or Link()
        self.session = ProviderSession()

    def end(self) -> None:
        """No write is begun from now on, and waits end soon: the next run goes on, and two must not do it
        at once.
        """
        self.session.forbid_writes("Pulumi's engine is gone")
        self.session.cancel()

    # --- the plugin

    @_answering
    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.link.connect(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, accept_resources=False, accept_outputs=True
        )

    @_answering
    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.link.connect(request.address)
        return empty_pb2.Empty()

    @_answering
    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=version())

    @_answering
    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:
        from pulumi_hosting.provider.plugin.package_schema import package_spec  # few runs ask for it

        return provider_pb2.GetSchemaResponse(schema=json.dumps(package_spec(version())))

    @_answering
    def GetMapping(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.GetMappingResponse()

    @_answering
    def GetMappings(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.GetMappingsResponse()

    @_answering
    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.session.cancel()
        return empty_pb2.Empty()

    # --- its configuration

    @_answering
    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        news = opened(request.news)
        failures = failures_of(news.values)
        return provider_pb2.CheckResponse(
            inputs=closed(news.values, news.secrets | SECRET_SETTINGS), failures=_failures(failures)
        )

    @_answering
    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        # Answered "none" after a key was rotated, the engine would go on with the old key for a whole run.
        olds, news = (
            opened(request.old_inputs).values or opened(request.olds).values,
            opened(request.news).values,
        )
        differing = sorted(key for key in olds.keys() | news.keys() if olds.get(key) != news.get(key))
        kinds = provider_pb2.DiffResponse
        return kinds(changes=kinds.DIFF_SOME if differing else kinds.DIFF_NONE, diffs=differing)

    @_answering
    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        given = opened(request.args).values
        # A provider that the program declares is another account beside the one of the environment: its own
        # settings come first.
        others = {
            variable
            for name, variable in SETTINGS.items()
            if _is_default(request.name) or not given.get(name)
        }
        # Another command has begun: state of the previous command must not leak into this one (a plugin may
        # be attached to several).
        self.session = ProviderSession(
            {variable: value for variable, value in os.environ.items() if variable in others}
        )
        self.session.configure({name: given.get(name) for name in SETTINGS})
        self.session.budget.run = self.link.address
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=False, acceptOutputs=True
        )

    # --- resources

    @_answering
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        subject, olds, news = Subject.of(request.urn), opened(request.olds), opened(request.news)
        props = _without_ours(news.values)
        if subject.resource.default_name and props.get("name") is None:
            props["name"] = subject.name
        identity = self._identity(subject, news.values)
        inputs, failures = self._adapter(subject).check(
            {**olds.values, IDENTITY: identity}, {**props, IDENTITY: identity}
        )
        answer = closed(
            {**_without_ours(inputs), **_organization(news.values)}, news.secrets | subject.secrets
        )
        return provider_pb2.CheckResponse(inputs=answer, failures=_failures(failures))

    @_answering
    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        subject, olds, news = (
            Subject.of(request.urn),
            opened(request.olds).values,
            opened(request.news).values,
        )
        # Both names of the declaration, old and new, are told whose the object is: a replacement is ordered
        # under the new one.
        declared = opened(request.old_inputs).values
        before = {**_unseen(subject, declared), **olds, IDENTITY: self._identity(subject, news, olds)}
        found = self._adapter(subject).diff(
            request.id, before, {**news, IDENTITY: self._identity(subject, news)}
        )
        kinds = provider_pb2.DiffResponse
        answer = kinds(
            changes=kinds.DIFF_SOME if found.changes else kinds.DIFF_NONE,
            replaces=found.replaces,
            deleteBeforeReplace=found.delete_before_replace,
            diffs=sorted(found.properties),
            hasDetailedDiff=True,
        )
        for name, change in found.properties.items():
            kind = f"{change.kind.upper()}_REPLACE" if change.replaces else change.kind.upper()
            answer.detailedDiff[name].kind = provider_pb2.PropertyDiff.Kind.Value(kind)
        return answer

    @_answering
    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        subject, props = Subject.of(request.urn), opened(request.properties)
        answering = _Answering(subject, self._identity(subject, props.values), props)
        asked = answering.asked(props.values, request.timeout)
        if request.preview:
            return provider_pb2.CreateResponse(
                properties=answering.outputs(self._adapter(subject).preview_create(asked))
            )
        try:
            id, outputs = self._adapter(subject).create(asked)
        except Partial as partial:
            raise answering.half_done(partial) from None
        return provider_pb2.CreateResponse(id=id, properties=answering.outputs(outputs))

    @_answering
    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        subject, olds, inputs = Subject.of(request.urn), opened(request.properties), opened(request.inputs)
        known = MANAGED in olds.values  # else it is an import or a lookup, by the id alone
        answering = _Answering(subject, self._identity(subject, inputs.values, olds.values), olds, inputs)
        try:
            found = self._adapter(subject).read(
                request.id, answering.asked(olds.values, request.timeout), inputs.values or None
            )
        except Partial as partial:
            raise answering.half_done(partial) from None
        if found is None:
            if not known:  # "gone" would be imported as an empty resource
                title = subject.resource.title
                fail(
                    f"there is no {title} with id {clean_text(request.id, 80)} on this account. Next: "
                    f"correct the id"
                )
            return provider_pb2.ReadResponse()
        id, outputs, live = found
        return provider_pb2.ReadResponse(
            id=id, properties=answering.outputs(outputs), inputs=answering.inputs(live)
        )

    @_answering
    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        subject, olds, news = Subject.of(request.urn), opened(request.olds), opened(request.news)
        declared = opened(request.old_inputs).values
        answering = _Answering(subject, self._identity(subject, news.values, olds.values), news)
        before, asked = (
            answering.asked({**_unseen(subject, declared), **olds.values}),
            answering.asked(news.values, request.timeout),
        )
        if request.preview:
            predicted = self._adapter(subject).preview_update(request.id, before, asked)
            return provider_pb2.UpdateResponse(properties=answering.outputs(predicted))
        try:
            outputs = self._adapter(subject).update(request.id, before, asked)
        except Partial as partial:
            raise answering.half_done(partial) from None
        return provider_pb2.UpdateResponse(properties=answering.outputs(outputs))

    @_answering
    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        subject, olds = Subject.of(request.urn), opened(request.properties)
        answering = _Answering(
            subject, self._identity(subject, opened(request.old_inputs).values, olds.values), olds
        )
        self._adapter(subject).delete(request.id, answering.asked(olds.values, request.timeout))
        return empty_pb2.Empty()

    # --- functions

    @_answering
    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        from pulumi_hosting.provider.lookup_tokens import call  # few programs ask for any
        from pulumi_hosting.schema.lookups import LOOKUPS

        name = request.tok.rpartition(":")[2]
        found = call(self.session.client, name, opened(request.args).values)
        secret = {field.wire for field in LOOKUPS[name].results if field.secret}
        answer = provider_pb2.InvokeResponse()
        getattr(answer, "return").CopyFrom(closed(found, secret))
        return answer

    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:
        return context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{NAME} has no component resources")

    def Call(self, request: Any, context: grpc.ServicerContext) -> Any:
        return context.abort(grpc.StatusCode.UNIMPLEMENTED, f"resources of {NAME} have no methods")

    # --- parts

    def _identity(
        self, subject: Subject, declared: Mapping[str, Any], recorded: Mapping[str, Any] | None = None
    ) -> str:
        """As recorded when the object was made: a renamed resource keeps the identity that its object's
        tag is made of.
        """
        if recorded and recorded.get(IDENTITY):
            return str(recorded[IDENTITY])
        organization = declared.get(ORGANIZATION)
        return self.session.identity(
            subject.identity, organization if isinstance(organization, str) else None
        )

    def _adapter(self, subject: Subject) -> Adapter:
        urn, known = subject.urn, f"{subject.name}: "  # the engine shows the name beside the line
        return Adapter(
            subject.resource,
            self.session,
            info=lambda line: self.link.info(urn, line.removeprefix(known)),
            warn=lambda line: self.link.warn(urn, line.removeprefix(known)),
            ids_may_change=True,
            urn=urn,
        )


def _unseen(subject: Subject, declared: Mapping[str, Any]) -> Props:
    """What the service never shows, as it was declared last: an engine that saw no difference recorded it
    among the inputs alone.
    """
    names = [
        camel(name)
        for name in subject.resource.Inputs.model_fields
        if subject.resource.Inputs.trait(name).write_only
    ]
    return {name: declared[name] for name in names if declared.get(name) is not None}


class _Answering:
    """One request about a resource: what goes to the adapter with its values, and what comes back for the
    wire.
    """

    def __init__(self, subject: Subject, identity: str, *received: Opened) -> None:
        self.identity = identity
        self._secrets = subject.secrets.union(*(part.secrets for part in received))
        self._organization = {
            name: value for part in received for name, value in _organization(part.values).items()
        }
        self._own_timeout = any(part.values.get(WAIT_TIMEOUT) is not None for part in received)

    def asked(self, values: Mapping[str, Any], timeout: float = 0.0) -> Props:
        """With the declaration's identity, and the custom timeout where the program sets no waiting time
        of its own.
        """
        waiting = {WAIT_TIMEOUT: timeout} if timeout > 0 and not self._own_timeout else {}
        return {**values, **waiting, IDENTITY: self.identity}

    def outputs(self, values: Mapping[str, Any]) -> Any:
        kept = {key: value for key, value in values.items() if key != WAIT_TIMEOUT or self._own_timeout}
        return closed({**kept, IDENTITY: self.identity}, self._secrets)

    def inputs(self, values: Mapping[str, Any]) -> Any:
        kept = {key: value for key, value in values.items() if key != WAIT_TIMEOUT or self._own_timeout}
        return closed({**_without_ours(kept), **self._organization}, self._secrets)

    def half_done(self, partial: Partial) -> _HalfDone:
        detail = provider_pb2.ErrorResourceInitFailed(
            id=partial.id,
            properties=self.outputs(partial.outputs),
            reasons=[" ".join(reason.split()) for reason in partial.reasons],
            refresh_before_update=partial.refresh,
        )
        if partial.inputs is not None:
            detail.inputs.CopyFrom(self.inputs(partial.inputs))
        return _HalfDone(detail)


def _organization(declared: Mapping[str, Any]) -> Props:
    return {ORGANIZATION: declared[ORGANIZATION]} if declared.get(ORGANIZATION) else {}


def _is_default(name: str) -> bool:
    """Whether it is the provider that the engine makes of the stack's configuration."""
    return not name or name == "default" or name.startswith("default_")


def _without_ours(values: Mapping[str, Any]) -> Props:
    return {key: value for key, value in values.items() if not key.startswith("__")}


def _failures(failures: Mapping[str, str]) -> list[provider_pb2.CheckFailure]:
    # A failure that names its property is printed with the property's value, secret or not: so the name goes
    # into the reason.
    return [
        provider_pb2.CheckFailure(reason=(f"{camel(name)}: {why}") if name else why)
        for name, why in failures.items()
    ]


# --- the process


def serve(plugin: Plugin) -> tuple[grpc.Server, int]:
    """A running server, on this machine only, and its port."""
    server = grpc.server(ThreadPoolExecutor(_WORKERS, thread_name_prefix="plugin"), options=_MESSAGE_SIZE)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def main() -> None:
    """``pulumi-resource-hosting``: prints its port and serves until it is told to end, or the engine is
    gone.
    """
    if {"-h", "--help"} & {*sys.argv[1:]}:
        print("pulumi-resource-hosting is started by Pulumi: it prints a port and serves")
        return
    if "--version" in sys.argv[1:]:
        print(version())
        return
    try:
        local_files.check_platform()
    except local_files.LocalFilesError as error:
        sys.exit(f"pulumi-resource-hosting: {error}")
    # A queue of this kind may be put to by a signal in the middle of the wait; an event would sometimes wait
    # for itself.
    ended: SimpleQueue[None] = SimpleQueue()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: ended.put(None))
    plugin = Plugin()
    plugin.link.connect(engine_address(sys.argv[1:]))
    server, port = serve(plugin)
    print(port, flush=True)  # the one line the engine reads
    sys.stdout = sys.stderr
    plugin.link.watch(lambda: ended.put(None))
    ended.get()
    plugin.end()
    server.stop(_GRACE).wait()
    # The line to the engine ends with the process: closed before, its own thread would complain of it.
    # The interpreter joins the threads of requests that are still at it: a write that was begun is finished.


if __name__ == "__main__":
    main()
