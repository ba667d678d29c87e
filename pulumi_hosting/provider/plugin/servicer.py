"""The native provider ``pulumi-resource-hosting``: a provider plugin over Pulumi's own protocol.

The servicer is thin: it unmarshals a request, calls the adapter and marshals what that returns. It adds what
only the protocol has: the URN (which names the resource), previews, secrets, custom timeouts, partial
failures, and the engine's log.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, wraps
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.protobuf.struct_pb2 import Struct

from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.client import debug_log
from pulumi_hosting.client.settings import API_KEY_SOURCES
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.provider import names
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.failures import PartialFailure, StepFailed, as_user_error, check_failure, fail
from pulumi_hosting.provider.names import PropertyValues, Props, camel, class_of, token
from pulumi_hosting.provider.plugin.autonaming import chosen_name
from pulumi_hosting.provider.plugin.engine_log import EngineConnection, engine_address
from pulumi_hosting.provider.plugin.install import version
from pulumi_hosting.provider.plugin.marshal import Properties, marshal, unmarshal
from pulumi_hosting.provider.plugin.protocol import plugin_pb2, provider_pb2_grpc, status_pb2
from pulumi_hosting.provider.plugin.protocol import provider_pb2 as rpc
from pulumi_hosting.provider.provider_session import NO_ORGANIZATION, ProviderSession
from pulumi_hosting.provider.stack_settings import SETTINGS, STACK_SETTINGS, failures_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import AnyResource

_KINDS: Mapping[str, str] = {token(class_of(kind)): kind for kind in RESOURCES}


def resource_of(urn: str) -> AnyResource:
    """That of the type in ``urn:pulumi:<stack>::<project>::<parents' types$type>::<name>``."""
    type = urn.split("::")[2].rpartition("$")[2] if urn.count("::") >= 3 else urn
    kind = _KINDS.get(type)
    if kind is None:
        fail(
            f"there is no resource {clean_text(type, 80)} in {names.NAME}. Next: correct the type, one of "
            f"{', '.join(sorted(_KINDS))}"
        )
    return RESOURCES[kind]


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
        organization = declared.get(names.ORGANIZATION)
        self.declared_identity = session.identity(
            names.identity_of(urn, self.resource.kind),
            organization if isinstance(organization, str) else None,
        )
        self.identity = str((recorded or {}).get(names.IDENTITY) or self.declared_identity)
        self._secrets = _always_secret(self.resource).union(*(part.secrets for part in received))
        organizations = [
            part.values[names.ORGANIZATION] for part in received if part.values.get(names.ORGANIZATION)
        ]
        self._organization = {names.ORGANIZATION: organizations[-1]} if organizations else {}
        known = f"{self.name}: "  # the engine shows the name beside the line
        self.adapter = Adapter(
            self.resource,
            session,
            info=lambda line: engine.info(urn, line.removeprefix(known)),
            warn=lambda line: engine.warn(urn, line.removeprefix(known)),
            announce=lambda line: engine.announce(urn, line.removeprefix(known)),
            ids_may_change=True,
            urn=urn,
            timeout=timeout or None,
        )

    def default_name(self, request: rpc.CheckRequest, recorded: PropertyValues) -> str:
        """The name if the program gives none: that of the resource in the program; with
        ``pulumi:autonaming`` the recorded one, or one that follows from the identity. Raises ``ValueError``.
        """
        if not request.HasField("autonaming"):
            return self.name
        stack, project = request.urn.removeprefix("urn:pulumi:").split("::")[:2]
        organization = self._organization.get(names.ORGANIZATION, NO_ORGANIZATION)
        parts = {self.name, stack, project, organization, self.adapter.session.settings.scope or ""} - {""}
        return str(recorded.get("name") or chosen_name(request.autonaming, parts))

    def with_identity(self, values: PropertyValues) -> Props:
        """For the adapter."""
        return {**values, names.IDENTITY: self.identity}

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

    def init_failed(self, failure: PartialFailure) -> rpc.ErrorResourceInitFailed:
        """Something exists that is not ready yet: the engine saves it, and the next run goes on."""
        detail = rpc.ErrorResourceInitFailed(
            id=failure.id,
            properties=self.outputs(failure.outputs),
            reasons=[" ".join(reason.split()) for reason in failure.reasons],
            refresh_before_update=failure.refresh,
        )
        if failure.inputs is not None:
            detail.inputs.CopyFrom(self.inputs(failure.inputs))
        return detail


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
            with as_user_error(NotImplementedError):
                return method(self, request, context)
        except StepFailed as error:
            line = str(error)
        except NotImplementedError as error:
            code, line = grpc.StatusCode.UNIMPLEMENTED, str(error)
        context.abort(code, line)

    return reporting


Context = grpc.ServicerContext
SECRET_SETTINGS = frozenset(name for name, setting in STACK_SETTINGS.items() if setting.secret)
IMPORT_REMARK = (
    "in Python, the printed code needs `import pulumi_hosting.native as hosting` in place of `import "
    "pulumi_hosting_sdk as hosting`, unless the program has added that package"
)
"""Under what ``pulumi import`` imports. The code that it prints imports the package that ``pulumi package
add`` makes. That cannot be ``pulumi_hosting.native``: the generator makes one folder, with a dot in its name.
And ``pulumi_hosting`` has the dynamic classes, which would replace what was imported.
"""

_WORKERS = 128  # threads are made as they are needed; the engine asks as many at once as its --parallel says
_LOOK_FOR_SIGNALS = 1.0  # seconds
_GRACE = 4.0  # seconds; the engine waits five before it kills
# as the engine's own
_MESSAGE_SIZE = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]


@reports_errors
class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """One provider instance: one configuration, one account. Serves any number of requests at once."""

    def __init__(self, engine: EngineConnection | None = None) -> None:
        self.engine = engine or EngineConnection()
        self.session = ProviderSession()
        self._first: dict[str, str] = {}
        """URN → the call that came first: only `pulumi import` reads before it checks."""
        self._told_import = False

    def end(self) -> None:
        """Start no write from now on and end every wait: the next run continues, and two must not do so at
        once.
        """
        self.session.forbid_writes("Pulumi's engine is gone")
        self.session.cancel()

    # --- the plugin

    def Handshake(
        self, request: rpc.ProviderHandshakeRequest, context: Context
    ) -> rpc.ProviderHandshakeResponse:
        self.engine.connect(request.engine_address)
        return rpc.ProviderHandshakeResponse(
            accept_secrets=True,
            accept_resources=False,
            accept_outputs=True,
            supports_autonaming_configuration=True,
        )

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> empty_pb2.Empty:
        self.engine.connect(request.address)
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=version())

    def GetSchema(self, request: rpc.GetSchemaRequest, context: Context) -> rpc.GetSchemaResponse:
        from pulumi_hosting.provider.plugin.package_schema import package_spec  # few runs ask for it

        return rpc.GetSchemaResponse(schema=json.dumps(package_spec(version())))

    def GetMapping(self, request: rpc.GetMappingRequest, context: Context) -> rpc.GetMappingResponse:
        return rpc.GetMappingResponse()

    def GetMappings(self, request: rpc.GetMappingsRequest, context: Context) -> rpc.GetMappingsResponse:
        return rpc.GetMappingsResponse()

    def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        # Asked after Ctrl-C, and at the end of each run, before the engine ends its providers.
        self.session.cancel()
        if line := self.session.money_line():
            self.engine.info("", line)
        return empty_pb2.Empty()

    # --- its configuration

    def CheckConfig(self, request: rpc.CheckRequest, context: Context) -> rpc.CheckResponse:
        news = unmarshal(request.news)
        failures = failures_of(news.values, news.secrets)
        return rpc.CheckResponse(
            inputs=marshal(news.values, news.secrets | SECRET_SETTINGS), failures=_failures(failures)
        )

    def DiffConfig(self, request: rpc.DiffRequest, context: Context) -> rpc.DiffResponse:
        # Answered "none" after a key was rotated, the engine would go on with the old key for a whole run.
        olds = unmarshal(request.old_inputs).values or unmarshal(request.olds).values
        news = unmarshal(request.news).values
        differing = sorted(key for key in olds.keys() | news.keys() if olds.get(key) != news.get(key))
        kinds = rpc.DiffResponse
        return kinds(changes=kinds.DIFF_SOME if differing else kinds.DIFF_NONE, diffs=differing)

    def Configure(self, request: rpc.ConfigureRequest, context: Context) -> rpc.ConfigureResponse:
        given = unmarshal(request.args).values
        # The engine makes the default provider of the stack's configuration. One that the program declares is
        # another account beside the one of the environment: its own settings come first.
        is_default = request.name in ("", "default") or request.name.startswith("default_")
        others = {
            variable for name, variable in SETTINGS.items() if is_default or given.get(name) in (None, "")
        }
        if SETTINGS["apiKey"] in others:
            others.update(API_KEY_SOURCES)
        # Another command begins: state of the previous command must not leak into this one (a plugin may
        # be attached to several).
        self.session = ProviderSession(
            {variable: value for variable, value in os.environ.items() if variable in others}
        )
        self.session.configure(given)
        self.session.ledger.run = self.engine.address
        return rpc.ConfigureResponse(
            acceptSecrets=True,
            supportsPreview=True,
            acceptResources=False,
            acceptOutputs=True,
            supports_autonaming_configuration=True,
        )

    # --- resources

    @contextmanager
    def _call(
        self, request: Any, context: Context, *received: Properties, **known: Props
    ) -> Iterator[ResourceCall]:
        timeout = getattr(request, "timeout", 0.0)  # of a step that may wait
        call = ResourceCall(self.session, self.engine, request.urn, *received, timeout=timeout, **known)
        try:
            yield call
        except PartialFailure as failure:
            made, detail = call.init_failed(failure), any_pb2.Any()
            detail.Pack(made)
            line = "; ".join(made.reasons)
            # Pulumi's own Status: google.rpc's is a second symbol of that name, which ends the process.
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=line, details=[detail])
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            fail(line)

    def Check(self, request: rpc.CheckRequest, context: Context) -> rpc.CheckResponse:
        olds, news = unmarshal(request.olds).values, unmarshal(request.news)
        if self._first.setdefault(request.urn, "Check") == "Read" and not self._told_import:
            self._told_import = True
            self.engine.info(request.urn, IMPORT_REMARK)
        with self._call(request, context, news, declared=news.values) as call:
            props = program_inputs(news.values)
            unnamed = props.get("name") is None or names.UNNAMED in news.values
            if call.resource.default_name and unnamed:
                try:
                    props["name"] = call.default_name(request, olds)
                except ValueError as error:
                    return rpc.CheckResponse(inputs=request.news, failures=_failures({"name": str(error)}))
            props[names.SERVER] = news.values.get(names.SERVER)
            inputs, failures = call.adapter.check(call.with_identity(olds), call.with_identity(props))
            return rpc.CheckResponse(inputs=call.inputs(inputs), failures=_failures(failures))

    def Diff(self, request: rpc.DiffRequest, context: Context) -> rpc.DiffResponse:
        olds, news = unmarshal(request.olds).values, unmarshal(request.news).values
        with self._call(request, context, declared=news, recorded=olds) as call:
            before = call.with_write_only(unmarshal(request.old_inputs).values, olds)
            # a replacement is ordered under the identity that is declared now
            found = call.adapter.diff(request.id, before, {**news, names.IDENTITY: call.declared_identity})
            answer = rpc.DiffResponse(
                changes=rpc.DiffResponse.DIFF_SOME if found.changes else rpc.DiffResponse.DIFF_NONE,
                replaces=found.replaces,
                deleteBeforeReplace=found.delete_before_replace,
                diffs=sorted(found.properties),
                hasDetailedDiff=True,
            )
            for name, kind in found.properties.items():
                answer.detailedDiff[name].kind = rpc.PropertyDiff.Kind.Value(kind)
            return answer

    def Create(self, request: rpc.CreateRequest, context: Context) -> rpc.CreateResponse:
        props = unmarshal(request.properties)
        with self._call(request, context, props, declared=props.values) as call:
            desired = call.with_identity(props.values)
            if request.preview:
                self.engine.previewed(request.urn)
                return rpc.CreateResponse(properties=call.outputs(call.adapter.preview_create(desired)))
            id, outputs = call.adapter.create(desired)
            return rpc.CreateResponse(id=id, properties=call.outputs(outputs))

    def Read(self, request: rpc.ReadRequest, context: Context) -> rpc.ReadResponse:
        olds, inputs = unmarshal(request.properties), unmarshal(request.inputs)
        self._first.setdefault(request.urn, "Check" if olds.values or inputs.values else "Read")
        with self._call(request, context, olds, inputs, declared=inputs.values, recorded=olds.values) as call:
            before = call.with_identity(olds.values)
            found = call.adapter.read(request.id, before, inputs.values or None)
            if found is None:
                return rpc.ReadResponse()
            id, outputs, live = found
            return rpc.ReadResponse(id=id, properties=call.outputs(outputs), inputs=call.inputs(live))

    def Update(self, request: rpc.UpdateRequest, context: Context) -> rpc.UpdateResponse:
        olds, news = unmarshal(request.olds).values, unmarshal(request.news)
        with self._call(request, context, news, declared=news.values, recorded=olds) as call:
            before = call.with_write_only(unmarshal(request.old_inputs).values, olds)
            desired = call.with_identity(news.values)
            if request.preview:
                self.engine.previewed(request.urn)
                predicted = call.adapter.preview_update(request.id, before, desired)
                return rpc.UpdateResponse(properties=call.outputs(predicted))
            outputs = call.adapter.update(request.id, before, desired)
            return rpc.UpdateResponse(properties=call.outputs(outputs))

    def Delete(self, request: rpc.DeleteRequest, context: Context) -> empty_pb2.Empty:
        olds, declared = unmarshal(request.properties), unmarshal(request.old_inputs).values
        with self._call(request, context, olds, declared=declared, recorded=olds.values) as call:
            call.adapter.delete(request.id, call.with_identity(olds.values))
            return empty_pb2.Empty()

    # --- functions

    def Invoke(self, request: rpc.InvokeRequest, context: Context) -> rpc.InvokeResponse:
        from pulumi_hosting.provider.lookup_tokens import call  # few programs ask for any
        from pulumi_hosting.schema.lookups import LOOKUPS

        name = request.tok.rpartition(":")[2]
        self.session.tells(lambda line: self.engine.info("", line))
        found = call(self.session.client, name, unmarshal(request.args).values)
        secret = {field.wire for field in LOOKUPS[name].results if field.secret}
        answer = rpc.InvokeResponse()
        getattr(answer, "return").CopyFrom(marshal(found, secret))
        return answer

    def Construct(self, request: rpc.ConstructRequest, context: Context) -> NoReturn:
        raise NotImplementedError(f"{names.NAME} has no component resources")

    def Call(self, request: rpc.CallRequest, context: Context) -> NoReturn:
        raise NotImplementedError(f"resources of {names.NAME} have no methods")


def _failures(failures: Mapping[str, str]) -> list[rpc.CheckFailure]:
    return [rpc.CheckFailure(reason=check_failure(camel(name), why)) for name, why in failures.items()]


# --- the process


def serve(plugin: Plugin) -> tuple[grpc.Server, int]:
    """A running server, on this machine only, and its port."""
    server = grpc.server(ThreadPoolExecutor(_WORKERS, thread_name_prefix="plugin"), options=_MESSAGE_SIZE)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def main() -> None:
    """``pulumi-resource-hosting``: print the port and serve until a signal, or until the engine ends."""
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
    # A signal handler may put into a SimpleQueue during the wait; setting an Event there may deadlock.
    ended: SimpleQueue[None] = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.put(None))
    plugin = Plugin()
    plugin.engine.connect(engine_address(sys.argv[1:]))
    debug_log.show_with(lambda line: plugin.engine.info("", line))  # standard error of plugins is hidden
    server, port = serve(plugin)
    print(port, flush=True)  # the one line the engine reads
    sys.stdout = sys.stderr
    plugin.engine.watch(lambda: ended.put(None))
    while True:
        # A signal that comes just before the wait does not end it: its handler runs after the time-out.
        with suppress(Empty):
            ended.get(timeout=_LOOK_FOR_SIGNALS)
            break
    plugin.end()
    server.stop(_GRACE).wait()
    # The connection to the engine ends with the process: its own thread would log an error if it were closed.
    # The interpreter joins the threads of requests under way, so a write that was started is finished.
