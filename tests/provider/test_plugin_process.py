"""The plugin as a process, and where it is installed."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from google.protobuf import empty_pb2
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from pulumi_hosting import cli
from pulumi_hosting.provider import version
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.provider.plugin.marshal import marshal
from pulumi_hosting.provider.plugin.servicer import Plugin, main
from pulumi_hosting.rehearsal.account_check import check
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import PULUMI, Engine
from pulumi_hosting.rehearsal.managed_objects import ManagedObject, ManagedObjects
from tests.support.waiting import HANG_SECONDS, wait_until

URN = "urn:pulumi:dev::toys::hosting:index:Server::web"

ENGINE = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2_grpc

class Engine(engine_pb2_grpc.EngineServicer):
    def Log(self, request, context):
        return empty_pb2.Empty()

server = grpc.server(ThreadPoolExecutor(2))
engine_pb2_grpc.add_EngineServicer_to_server(Engine(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
threading.Event().wait()
"""


@contextlib.contextmanager
def process(*command: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A process of ours that is ended in any case."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, **environ}, **pipes) as started:  # type: ignore[call-overload]  # a mapping of options has no overload
        try:
            yield started
        finally:
            started.kill()


def plugin(*arguments: str, **environ: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    return process(sys.executable, "-P", "-m", "pulumi_hosting.provider.plugin", *arguments, **environ)


def port(started: subprocess.Popen[str]) -> str:
    assert started.stdout
    return started.stdout.readline().strip()


@contextlib.contextmanager
def stub(port: str) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_port_and_nothing_else_and_ends_at_a_signal(sign: signal.Signals) -> None:
    with plugin("--logtostderr", "-v=9", "--tracing", "x", "127.0.0.1:1") as started:
        with stub(port(started)) as asked:
            assert asked.GetPluginInfo(empty_pb2.Empty()).version == install.version()
            with pytest.raises(grpc.RpcError):
                asked.Check(provider_pb2.CheckRequest(urn="nonsense"))
        started.send_signal(sign)
        rest, errors = started.communicate(timeout=HANG_SECONDS)
        assert started.returncode == 0
    assert rest == ""
    assert errors == ""


def test_it_finishes_what_it_began_and_ends_when_its_engine_is_killed(emulator: Any) -> None:
    control = Control(emulator.control_url)
    control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"delay": 2}})
    account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
    with (
        process(sys.executable, "-c", ENGINE) as engine,
        plugin(f"127.0.0.1:{port(engine)}", **account) as started,
    ):
        with stub(port(started)) as asked, ThreadPoolExecutor(1) as pool:
            asked.Configure(provider_pb2.ConfigureRequest(name="default"))
            inputs = marshal({"name": "web", "tariffId": 1, "os": "debian-12"})
            making = pool.submit(asked.Create, provider_pb2.CreateRequest(urn=URN, properties=inputs))
            wait_until(lambda: control.ledger() or making.done())
            assert not making.done()
            engine.kill()
            with contextlib.suppress(grpc.RpcError):  # the answer may or may not arrive
                making.result()
        assert started.wait(HANG_SECONDS) == 0
    (server,) = control("GET", "/objects")["servers"]
    assert "[iac2:" in server["notes"]  # the create went to its end, which is the mark
    # The one server, paid once, is all there is on the account: it stands for the entry that its engine could
    # not write any more.
    assert check(control, ManagedObjects((ManagedObject("server", str(server["id"]), "web"),))) == []


def test_no_write_starts_for_an_engine_that_is_gone(emulator: Any) -> None:
    made = Plugin()
    made.session.configure({"apiKey": emulator.live_key, "baseUrl": emulator.base_url})
    made.end()

    class Context:
        """Takes what grpc's own would send."""

        message = ""

        def abort(self, code: grpc.StatusCode, message: str) -> None:
            self.message = message

    inputs = marshal({"name": "web", "tariffId": 1, "os": "debian-12"})
    asked: tuple[tuple[Any, Any], ...] = (
        (made.Create, provider_pb2.CreateRequest(urn=URN, properties=inputs)),
        (made.Update, provider_pb2.UpdateRequest(urn=URN, id="20001", olds=inputs, news=inputs)),
        (made.Delete, provider_pb2.DeleteRequest(urn=URN, id="20001", properties=Struct())),
    )
    for method, request in asked:
        context: Any = Context()
        method(request, context)
        assert context.message == "Pulumi's engine is gone; nothing was sent. Next: run again"
    control = Control(emulator.control_url)
    assert not [row for row in control("GET", "/requests") if row["method"] != "GET"]
    assert check(control, ManagedObjects()) == []
    made.session.client.close()


# --- installation


def test_without_a_cli_it_is_put_where_one_would_look(tmp_path: Path) -> None:
    home = {"PULUMI_HOME": str(tmp_path), "PATH": ""}
    place = install.install(environ=home)
    assert place == tmp_path / "plugins" / f"resource-hosting-v{install.version()}"
    assert install.install(environ=home) == place  # again is no mistake
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "pulumi.py").write_text(
        "raise SystemExit('a file of the program stood in for a module')"
    )
    with process("/bin/sh", "-c", f"cd {tmp_path}/elsewhere && exec {place / install.EXECUTABLE}") as started:
        with stub(port(started)) as asked:
            assert asked.GetPluginInfo(empty_pb2.Empty()).version == install.version()
        started.terminate()
        assert started.wait(HANG_SECONDS) == 0
    assert install.uninstall(home) == place
    assert install.uninstall(home) is None


def test_what_is_in_the_way_of_an_uninstallation_is_named_in_one_line(tmp_path: Path) -> None:
    home = {"PULUMI_HOME": str(tmp_path)}
    place = install.place(home)
    place.parent.mkdir()
    place.write_text("no directory")
    with pytest.raises(install.InstallError, match=f"{place}: Not a directory. Next: correct the path"):
        install.uninstall(home)
    assert place.read_text() == "no directory"


def test_a_user_without_an_entry_has_the_home_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567_890)  # as in a container that runs as any user
    assert install.place({"HOME": "/workspace"}).is_relative_to("/workspace/.pulumi/plugins")


def test_the_cli_takes_it_and_shows_its_schema(engine: Engine, tmp_path: Path) -> None:
    home = {**os.environ, "PULUMI_HOME": str(tmp_path), "PULUMI_SKIP_UPDATE_CHECK": "true", "NO_COLOR": "1"}
    if engine.name != PULUMI:
        home["PATH"] = ""
    place = install.install(environ=home)
    assert os.access(place / install.EXECUTABLE, os.X_OK)
    if engine.name == PULUMI:
        listed = subprocess.run(
            [*engine.command, "plugin", "ls", "--json"], env=home, capture_output=True, text=True, check=True
        )
        assert '"hosting"' in listed.stdout
        schema = subprocess.run(
            [*engine.command, "package", "get-schema", "hosting"],
            env=home,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert '"hosting:index:Server"' in schema.stdout, schema.stderr
    assert install.uninstall(home) == place
    assert not list(place.parent.glob("resource-hosting*"))


def test_a_cli_that_refuses_is_quoted_in_one_line(tmp_path: Path) -> None:
    refusing = tmp_path / "pulumi"
    refusing.write_text("#!/bin/sh\necho 'error: no such\nplugin' >&2\nexit 3\n")
    refusing.chmod(0o755)
    with pytest.raises(
        install.InstallError,
        match=r"refused the plugin: error: no such plugin\. Next: run "
        r"`",
    ) as refused:
        install.install(str(refusing), {"PULUMI_HOME": str(tmp_path)})
    assert "\n" not in str(refused.value)


def test_the_command_line_installs_and_removes(tmp_path: Path) -> None:
    home = {"PULUMI_HOME": str(tmp_path), "PATH": ""}
    place = str(install.place(home))
    runner = CliRunner()
    said = [
        runner.invoke(cli.main, ["plugin", *command], env=home)
        for command in (
            ["path"],
            ["install"],
            ["path"],
            ["uninstall"],
            ["uninstall"],
            ["install", "--pulumi", "/nowhere"],
        )
    ]
    assert [item.exit_code for item in said] == [1, 0, 0, 0, 0, 2]
    assert [item.output.strip() for item in said[:-1]] == [
        place, f"installed: {place}", place, f"removed: {place}", f"not installed: {place}",
    ]  # fmt: skip
    blocked = tmp_path / "plugins"
    shutil.rmtree(blocked, ignore_errors=True)
    blocked.write_text("in the way")
    failed = runner.invoke(cli.main, ["plugin", "install"], env=home)
    assert failed.exit_code == 1
    assert "Next: correct the path, or set PULUMI_HOME" in failed.output


@pytest.mark.parametrize(
    ("python", "pulumi"), [("1.2.0", "1.2.0"), ("1.2.0rc1", "1.2.0-rc.1"), ("1.2.0.dev3", "1.2.0-dev.3")]
)
def test_versions_are_spelled_as_pulumi_reads_them(python: str, pulumi: str) -> None:
    assert version.semantic(python) == pulumi


@pytest.mark.parametrize(
    ("option", "printed"), [("--help", "is started by Pulumi"), ("--version", version.version())]
)
def test_a_person_who_starts_it_is_answered(
    option: str, printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pulumi-resource-hosting", option])
    main()
    assert printed in capsys.readouterr().out
