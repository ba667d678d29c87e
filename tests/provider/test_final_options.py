"""The stack transform that decides by a server's final options what goes with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from gc import collect
from typing import Any
from weakref import ref

import pulumi
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import callback_pb2, resource_pb2

from pulumi_hosting.provider import final_options
from pulumi_hosting.provider.final_options import LastTransform, watch

STACK = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"
TYPES = {"dynamic": "pulumi-python:dynamic/hosting:{}", "native": "hosting:index:{}"}


class Monitor:
    """Keeps the transforms of a stack."""

    def __init__(self, *, transforms: bool = True) -> None:
        self.registered: list[Any] = []
        self._knows = transforms
        self.RegisterStackTransform = self._register  # the SDK's stubs hold their calls as attributes

    def SupportsFeature(self, request: Any) -> Any:
        return resource_pb2.SupportsFeatureResponse(hasSupport=self._knows and request.id == "transforms")

    def _register(self, callback: Any) -> Any:
        self.registered.append(callback)
        return empty_pb2.Empty()


class Program:
    """Registers resources, of one form, as an engine shows them to the transform."""

    def __init__(self, form: str) -> None:
        self._types = TYPES[form]
        self.monitor = Monitor()
        self._last = LastTransform()
        self._last.register(self.monitor)

    def urn(self, name: str, inside: str = "") -> str:
        """That of a server."""
        return f"urn:pulumi:dev::shop::{inside}{self._types.format('Server')}::{name}"

    def register(
        self, kind: str, name: str, parent: str = STACK, token: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """What the transform changes of the options. ``kind``: a class of ours, or another type."""
        given = resource_pb2.TransformResourceOptions(**options)
        type = kind if ":" in kind else self._types.format(kind)
        asked = resource_pb2.TransformRequest(type=type, name=name, parent=parent, options=given)
        call = callback_pb2.CallbackInvokeRequest(
            token=self.monitor.registered[-1].token if token is None else token,
            request=asked.SerializeToString(),
        )
        response = self._last.Invoke(call, None).response  # type: ignore[arg-type]  # the context is not used
        answer = resource_pb2.TransformResponse.FromString(response)
        assert not answer.HasField("properties")
        if not answer.HasField("options"):
            return {}
        names = given.DESCRIPTOR.fields_by_name
        before, after = ({name: getattr(one, name) for name in names} for one in (given, answer.options))
        return {name: after[name] for name in names if after[name] != before[name]}

    def goes(self, kind: str, name: str, server: str, **options: Any) -> bool:
        """Whether it is left to go with the server that it belongs to."""
        of_it = {"deleted_with": server, "depends_on": [server], "ignore_changes": ["domain"]}
        changed = self.register(kind, name, **{**of_it, **options})
        assert changed in ({}, {"deleted_with": ""})
        return not changed


@pytest.fixture(params=TYPES)
def program(request: pytest.FixtureRequest) -> Program:
    return Program(request.param)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", found.append)
    return found


@contextmanager
def running(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(final_options, "get_monitor", lambda: monitor)
        yield


@pytest.mark.parametrize(
    ("options", "stays"),
    [
        ({}, False),
        ({"protect": False, "retain_on_delete": False}, False),
        ({"protect": True}, True),
        ({"retain_on_delete": True}, True),
        ({"protect": True, "retain_on_delete": True}, True),
    ],
)
@pytest.mark.parametrize("kind", ["ServerIp", "Ptr"])
def test_nothing_goes_with_a_server_that_stays(
    program: Program, kind: str, options: dict[str, Any], stays: bool, warnings: list[str]
) -> None:
    assert program.register("Server", "web", **options) == {}
    assert program.goes(kind, "one", program.urn("web")) is not stays
    assert warnings == []


def test_a_server_in_a_component_is_told_from_another_of_its_name(program: Program) -> None:
    types = "test:index:Room$test:index:Box"
    program.register("Server", "web", f"urn:pulumi:dev::shop::{types}::box", protect=True)
    program.register("Server", "web")
    assert not program.goes("ServerIp", "one", program.urn("web", f"{types}$"))
    assert program.goes("ServerIp", "two", program.urn("web"))


def test_nothing_goes_with_a_server_that_is_only_read(program: Program) -> None:
    assert not program.goes("ServerIp", "one", program.urn("read"))


def test_resources_of_others_keep_their_options(program: Program, warnings: list[str]) -> None:
    program.register("Server", "web", retain_on_delete=True)
    assert program.register("other:index:Record", "one", deleted_with=program.urn("web")) == {}
    assert warnings == []


def test_an_option_that_does_not_keep_it_warns(program: Program, warnings: list[str]) -> None:
    program.register("Server", "web")
    assert program.goes("ServerIp", "mail", program.urn("web"))
    assert program.goes("ServerIp", "mail", program.urn("web"), protect=True)  # the server stays with it
    assert warnings == []
    assert program.goes("ServerIp", "mail", program.urn("web"), retain_on_delete=True)
    assert warnings == [
        "mail: retain_on_delete does not keep it if its server web is deleted. Next: give web "
        "retain_on_delete too, or remove it here"
    ]


@pytest.mark.parametrize(
    ("kind", "deleted_with", "depends_on"),
    [
        ("Server", "web", "web"),
        ("SshKey", "web", "web"),
        ("ServerIp", "web", "db"),  # it belongs to another server
        ("Ptr", "box", "web"),
    ],
)
def test_what_is_not_deleted_with_that_is_deleted_itself(
    program: Program, kind: str, deleted_with: str, depends_on: str, warnings: list[str]
) -> None:
    for name in ("web", "db"):
        program.register("Server", name)
    urns = {"web": program.urn("web"), "db": program.urn("db")}
    urns["box"] = "urn:pulumi:dev::shop::test:index:Box::box"
    assert not program.goes(kind, "one", urns[deleted_with], depends_on=[urns[depends_on]])
    assert warnings == [
        f"one: deleted_with {deleted_with} is ignored: deleting that does not delete it. Next: remove the "
        "option"
    ]


def test_it_stays_the_last_transform_of_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor()
    earlier, later = (callback_pb2.Callback(token=name) for name in ("earlier", "later"))
    monitor.RegisterStackTransform(earlier)
    with running(monitor, monkeypatch):
        assert watch()
        monitor.RegisterStackTransform(later)
        assert watch()
    assert [call.target != "" for call in monitor.registered] == [False, True, False, True]
    assert monitor.registered[1].target == monitor.registered[3].target


def test_only_the_last_registration_decides(program: Program, warnings: list[str]) -> None:
    (first,) = program.monitor.registered
    program.monitor.RegisterStackTransform(callback_pb2.Callback())
    program.register("Server", "web")
    # What a transform in between changes is not known yet.
    program.register("Server", "web", token=first.token, protect=True)
    assert program.goes("ServerIp", "one", program.urn("web"), retain_on_delete=True, token=first.token)
    assert warnings == []
    assert program.goes("ServerIp", "one", program.urn("web"))


def test_an_engine_without_transforms_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(transforms=False)
    with running(monitor, monkeypatch):
        assert not watch()
        assert not watch()
    assert monitor.registered == []


def test_a_program_that_is_over_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Automation API runs many programs in one process."""
    monitor = Monitor()
    with running(monitor, monkeypatch):
        assert watch()
    gone = ref(monitor)
    del monitor
    collect()
    assert gone() is None
