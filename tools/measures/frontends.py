"""A new server, declared in both frontends, in this process: a real client over the emulator's transport.

Pulumi: the program's class, then Check and Create of its dynamic provider, as the SDK calls them. What the
engine does in between is played here: it hands the declared properties from one to the other. Ansible: the
action plugin of the module, with a task of a playbook.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from tools.measures.walk import Tracer, Walk

ROOT = Path(__file__).parent.parent.parent
TARIFF = 971_317
"""A tariff id that occurs nowhere else."""


def pulumi_walk() -> Walk:
    """The walk of a server's ``tariff_id`` through the program, Check and Create."""
    import pulumi
    from pulumi.dynamic import Config, ConfigureRequest
    from pulumi.runtime import mocks, rpc
    from pulumi.runtime.stack import wait_for_rpcs
    from pulumi.runtime.sync_await import _sync_await

    import pulumi_hosting
    from pulumi_hosting.provider.dynamic import ServerProvider

    declared: list[Any] = []

    class Engine(mocks.MockMonitor):
        """Keeps the properties of the server as they reached the engine."""

        def RegisterResource(self, request: Any) -> Any:
            if request.custom:
                declared.append(request.object)
            answer: Any = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # the SDK's has no types
            return answer

    class Objects(mocks.Mocks):
        def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
            return "1", dict(args.inputs)

        def call(self, args: mocks.MockCallArgs) -> Any:
            return {}

    async def program() -> None:
        pulumi_hosting.Server("web-1", tariff_id=TARIFF, os="debian-12")
        await wait_for_rpcs()

    def through_the_engine(properties: dict[str, Any]) -> dict[str, Any]:
        sent = _sync_await(rpc.serialize_properties(properties, {}))
        return dict(rpc.deserialize_properties(sent))

    def created() -> None:
        _sync_await(program())
        provider = ServerProvider()
        provider.configure(ConfigureRequest(Config({}, "shop")))
        properties = dict(rpc.deserialize_properties(declared[-1]))
        checked = provider.check({}, properties)
        if checked.failures:
            raise RuntimeError([failure.reason for failure in checked.failures])
        provider.create(through_the_engine(checked.inputs))

    asyncio.set_event_loop(asyncio.new_event_loop())
    objects = Objects()
    mocks.set_mocks(objects, project="shop", stack="dev", preview=False, monitor=Engine(objects))
    tracer, register = Tracer(TARIFF), pulumi.Resource.__init__

    def registered(self: pulumi.Resource, *arguments: Any, **options: Any) -> None:
        tracer.leaves(last=False)
        register(self, *arguments, **options)

    with patch.object(pulumi.Resource, "__init__", registered):
        return _followed(tracer, created)


def ansible_walk() -> Walk:
    """The walk of a server's ``tariff_id`` through the action plugin."""
    os.environ["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT)  # read when ansible is imported
    from ansible import constants
    from ansible.parsing.dataloader import DataLoader
    from ansible.playbook.task import Task
    from ansible.plugins.loader import init_plugin_loader
    from ansible.template import Templar

    options = {"name": "web-1", "tariff_id": TARIFF, "os": "debian-12"}
    init_plugin_loader()
    # found by Ansible's own loader
    from ansible_collections.hosting.cloud.plugins.action.server import ActionModule

    task = Task.load({"hosting.cloud.server": options})
    local = SimpleNamespace(
        transport="local", _shell=SimpleNamespace(tmpdir=None, env_prefix=lambda **names: "")
    )
    context = SimpleNamespace(become=False, check_mode=False, diff=False)

    def created() -> None:
        action: Any = ActionModule(task, local, context, loader=None, templar=Templar(DataLoader()))
        result = action.run(task_vars={"inventory_hostname": "localhost"})
        if not result.get("changed"):
            raise RuntimeError(result.get("msg") or result)

    with tempfile.TemporaryDirectory() as folder, patch.object(constants, "DEFAULT_LOCAL_TMP", folder):
        return _followed(Tracer(TARIFF), created)


def _followed(tracer: Tracer, create: Callable[[], None]) -> Walk:
    def sent(request: httpx.Request) -> None:
        if (request.method, request.url.path) == ("POST", "/v1/servers"):
            tracer.leaves(last=True)

    with (
        account(sent=sent),
        redirect_stdout(StringIO()),
        tracer.watching(),
    ):  # what the provider shows its user
        create()
    return tracer.walk()


def _nothing(*_: object) -> None:
    """Does nothing."""


@contextmanager
def account(
    *,
    port: int = 1,
    sent: Callable[[httpx.Request], None] = _nothing,
    answered: Callable[[httpx.Request, httpx.Response], None] = _nothing,
) -> Iterator[Core]:
    """A fresh account whose only tariff has the number; every client that is made meanwhile reaches it. A
    process keeps the client of an address, so each account has a ``port`` of its own.

    ``sent`` and ``answered`` get what leaves the client, and what reaches it.
    """
    core = Core(clock=Clock(manual=True))
    core.announce("http://emulator/v1", "http://emulator/_control", 1)
    tariff = core.store.tariffs.pop(1)
    tariff.id = TARIFF
    core.store.tariffs[TARIFF] = tariff

    class Watched(Transport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent(request)
            answer = super().handle_request(request)
            answered(request, answer)
            return answer

    transport, original = Watched(core), Client.__init__

    def reaching(self: Client, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **{**options, "transport": transport})

    reachable = {
        "HOSTING_API_KEY": core.ready_line["live_key"],
        "HOSTING_BASE_URL": f"http://127.0.0.1:{port}/v1",
    }
    with tempfile.TemporaryDirectory() as home:
        folders = {name: str(Path(home)) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")}
        with patch.dict(os.environ, {**reachable, **folders}), patch.object(Client, "__init__", reaching):
            yield core
