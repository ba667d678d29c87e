"""A fake engine for the classes of both providers, and samples of their arguments."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pulumi
from pulumi._types import output_type_to_dict
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import SETTINGS, _get_rpc_manager
from pulumi.runtime.stack import wait_for_rpcs
from pulumi.runtime.sync_await import _sync_await

import pulumi_hosting
from pulumi_hosting import native
from pulumi_hosting.provider.names import class_of as class_name
from pulumi_hosting.provider.output_type import OutputType
from pulumi_hosting.provider.resource_shape import inputs_of
from pulumi_hosting.provider.sdk import dynamic_resources as classes
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.fields import Type, fields

FORMS = {"dynamic": classes, "native": native}


TOKENS = {"dynamic": "pulumi-python:dynamic/hosting:{}", "native": "hosting:index:{}"}


class RecordedMocks(mocks.Mocks):
    """Takes every registration, answers with ``outputs``; a lookup is answered by ``answer``."""

    def __init__(self) -> None:
        self.outputs: dict[str, Any] = {}
        self.made: list[mocks.MockResourceArgs] = []
        self.requests: list[Any] = []
        self.answer: Callable[[str, Mapping[str, Any]], dict[str, Any]] = lambda token, args: {}
        self.asked: list[mocks.MockCallArgs] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        self.made.append(args)
        return args.resource_id or "4711", {**args.inputs, **self.outputs}

    def call(self, args: mocks.MockCallArgs) -> Any:
        self.asked.append(args)
        return self.answer(args.token, args.args)


class Monitor:
    """Remembers the registrations as they went over the wire. It is no ``MockMonitor``: programs behave as
    with an engine, not as in a unit test. It runs no transforms, and says so.
    """

    def __init__(self, recorded: RecordedMocks) -> None:
        self.recorded = recorded
        self._monitor: Any = mocks.MockMonitor(recorded)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)

    def SupportsFeature(self, request: Any) -> Any:
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id != "transforms")

    def RegisterResource(self, request: Any) -> Any:
        if request.custom:
            self.recorded.requests.append(request)
        return self._monitor.RegisterResource(request)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


class Engine:
    """A pretended engine; with ``unit_test`` the mocks of one, as ``pulumi.runtime.set_mocks`` makes them."""

    def __init__(self, *, preview: bool = False, unit_test: bool = False) -> None:
        self.recorded = RecordedMocks()
        # The SDK expects the thread to have an event loop, and ``asyncio.run`` of another test takes it away.
        asyncio.set_event_loop(_loop())
        _get_rpc_manager().clear()  # what an earlier test let fail is none of this one's
        SETTINGS.outputs.clear()
        mocks.set_mocks(
            self.recorded,
            project="shop",
            stack="dev",
            preview=preview,
            monitor=None if unit_test else Monitor(self.recorded),  # type: ignore[arg-type]  # it has the methods of one
        )

    def run(self, program: Callable[[], Any]) -> Any:
        """The program's result; an Output as its value."""

        async def played() -> Any:
            result = program()
            value = (
                await result.future()
                if isinstance(result, pulumi.Output)
                else await result
                if inspect.isawaitable(result)
                else result
            )
            await wait_for_rpcs()
            return value

        # In the SDK's own loop: it keeps one for a whole process.
        return _sync_await(played())


def sample(type: Type, name: str) -> Any:
    """Some value of a type, different for every name."""
    if type.model is not None:
        return {field.wire: sample(field.type, field.name) for field in fields(type.model)}
    if type.of is not None:
        return {"some_key": sample(type.of, name)} if type.kind == "map" else [sample(type.of, name)]
    return {
        "string": f"the {name}",
        "integer": len(name),
        "number": len(name) + 0.5,
        "boolean": True,
        "any": {"a_b": None},
    }[type.kind]


def declared(kind: str) -> dict[str, Any]:
    return {field.name: sample(field.type, field.name) for field in inputs_of(RESOURCES[kind])}


def class_of(form: str, kind: str) -> Any:
    return getattr(FORMS[form], class_name(kind))


def args_of(kind: str) -> Any:
    return getattr(pulumi_hosting, f"{class_name(kind)}Args")


def revealed(value: Any) -> Any:
    return value["value"] if isinstance(value, dict) and rpc._special_sig_key in value else value


def unrecorded(value: Any) -> Any:
    """A typed answer as it was on the wire."""
    if isinstance(value, OutputType):
        return {name: unrecorded(part) for name, part in output_type_to_dict(value).items()}
    if isinstance(value, list):
        return [unrecorded(part) for part in value]
    return {key: unrecorded(part) for key, part in value.items()} if isinstance(value, dict) else value
