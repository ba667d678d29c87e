"""Interrupted and killed engines."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulumi_hosting.offline.errors import OfflineError, UnfinishedCreates
from pulumi_hosting.offline.model.state import PendingOperation, Snapshot
from pulumi_hosting.offline.providers.plugin_process import PluginProcess
from pulumi_hosting.offline.providers.registry import DYNAMIC_PACKAGE, PluginHost
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.offline.conftest import TWO, MakeProject, up
from tests.offline.replay import ToyProject, children, end, runs
from tests.support.processes import wait_for_death
from tests.support.waiting import HANG_SECONDS


def run(project: ToyProject, *arguments: str) -> str:
    """What the command printed; it must succeed."""
    process = project.start(*arguments)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output


def kill_during_create(project: ToyProject, *arguments: str) -> None:
    """Start an `up`, and kill the engine when the provider is called."""
    process = project.start("up", *arguments)
    project.wait_for("Create", process)
    orphans = children(process.pid)
    process.kill()
    process.communicate()
    end(orphans)


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupt_finishes_the_running_step_and_starts_no_other(
    make_project: MakeProject, sign: signal.Signals
) -> None:
    project = make_project(TWO, form="native")
    project.set_faults(create_a="hold:a")
    process = project.start("up")
    project.wait_for("Create", process)
    process.send_signal(sign)
    project.wait_for("Cancel", process)
    project.release("a")
    output, _ = process.communicate()
    assert process.returncode == 8, output
    assert "update canceled" in output
    assert "Traceback" not in output
    assert [item["name"] for item in project.state()["resources"]] == ["toys-dev", "default", "a"]
    assert list(project.things()) == ["a#1"]
    assert up(project).changes == {"create": 1, "same": 2}


@pytest.mark.slow
def test_a_kill_leaves_a_readable_state(make_project: MakeProject) -> None:
    project = make_project("for i in range(12): Thing(f't{i}', {'name': f't{i}'})")
    kill_during_create(project, "--parallel", "3")
    snapshot = project.stack().snapshot()
    assert all(operation.type == "creating" for operation in snapshot.pending)
    project.stack().cancel()
    result = project.stack().refresh(clear_pending_creates=True)
    assert result.exit_code == 0
    assert up(project).exit_code == 0
    assert {f"t{i}" for i in range(12)} <= {item["name"] for item in project.state()["resources"]}


@pytest.mark.slow
def test_after_a_kill_the_program_ends_and_the_provider_finishes_and_ends(make_project: MakeProject) -> None:
    project = make_project('Thing("a", {"name": "a"})')
    project.environ["PULUMI_PYTHON_CMD"] = PYTHON
    project.set_faults(create_a="hold:a")
    process = project.start("up")
    project.wait_for("Create", process)
    commands = {leader: Path(f"/proc/{leader}/cmdline").read_text() for leader in children(process.pid)}
    process.kill()
    process.communicate()
    (program,) = [leader for leader, command in commands.items() if "run_program.py" in command]
    (provider,) = [leader for leader, command in commands.items() if "run_dynamic_provider.py" in command]
    try:
        wait_for_death([program])
        assert runs(provider)
        project.release("a")
        wait_for_death([provider])
        assert list(project.things()) == ["a#1"]
    finally:
        end([provider])


def test_a_provider_of_dynamic_resources_ends_with_its_engine(tmp_path: Path) -> None:
    """Also in the background job of a script, where interrupts are ignored."""
    command = PluginHost(PYTHON, tmp_path, tmp_path, "toys", {}, lambda *line: None).command(DYNAMIC_PACKAGE)
    pipe = subprocess.PIPE
    with ignoring_interrupts(), subprocess.Popen(command, stdin=pipe, stdout=pipe) as provider:
        assert provider.stdin is not None
        assert provider.stdout is not None
        assert int(provider.stdout.readline()) > 0
        provider.stdin.close()  # as the death of the engine does
        assert provider.wait(HANG_SECONDS) == 0


SERVER = """
import concurrent.futures, threading

class DynamicResourceProviderServicer:
    def Cancel(self, request, context):
        print("cancelled")

def step():
    (engine,) = [thread for thread in threading.enumerate() if thread.name == "engine"]
    engine.join()  # until its death was seen
    print("finished")

concurrent.futures.ThreadPoolExecutor().submit(step)
try:
    print(4711)
    threading.Event().wait()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupted_provider_finishes_its_step_when_the_engine_then_dies(tmp_path: Path) -> None:
    """The server stands in for the SDK's: it works in threads, and ends at an interrupt."""
    package = tmp_path / "pulumi" / "dynamic"
    package.mkdir(parents=True)
    for file, text in (("../__init__.py", ""), ("__init__.py", ""), ("__main__.py", SERVER)):
        (package / file).write_text(text, encoding="utf-8")
    command = PluginHost(PYTHON, tmp_path, tmp_path, "toys", {}, lambda *line: None).command(DYNAMIC_PACKAGE)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as provider:
        assert provider.stdin is not None
        assert provider.stdout is not None
        assert provider.stdout.readline() == "4711\n"
        provider.send_signal(signal.SIGINT)
        assert provider.stdout.readline() == "interrupted\n"
        provider.stdin.close()  # as the death of the engine does
        provider.stdin = None
        assert provider.communicate(timeout=HANG_SECONDS) == ("finished\n", "")
        assert provider.returncode == 0


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Processes started inside ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_what_the_refusal_of_destroy_advises_removes_everything(make_project: MakeProject) -> None:
    project = make_project('Thing("a", {"name": "a"})')
    project.set_faults(create_a="hold:a")
    kill_during_create(project)
    project.set_faults()
    project.stack().cancel()
    printed = run(project, "refresh")
    assert "A refresh cannot find what they created. Next: run `pulumi-hosting offline up`" in printed
    assert "This run finds what was created." in run(project, "up")
    assert "interrupted" not in run(project, "up")
    assert project.stack().destroy().exit_code == 0
    assert project.things() == {}
    assert project.stack().destroy().exit_code == 0
    project.stack().remove()


def test_destroy_is_refused_after_a_killed_create(make_project: MakeProject) -> None:
    """The state is the one that a killed run leaves: with the create as a pending operation."""
    project = make_project('Thing("a", {"name": "a"})')
    assert up(project).exit_code == 0
    stack = project.stack()
    snapshot = stack.snapshot()
    created = snapshot.resources.pop()
    stack.save(
        Snapshot(snapshot.resources, [PendingOperation("creating", created.copy(id=""))], snapshot.extra)
    )
    for preview in (True, False):
        with pytest.raises(UnfinishedCreates, match="toy:Thing a; what it created may exist") as refused:
            project.stack().destroy(preview_only=preview)
        assert "Next: run `pulumi-hosting offline up`" in str(refused.value)
        assert refused.value.exit_code == 1
    with pytest.raises(OfflineError, match=r"^an interrupted run was creating"):
        project.stack().remove()
    # An operation on other resources is not refused.
    assert project.stack().destroy(targets=("urn:pulumi:dev::toys::x::y",)).exit_code != 0


@pytest.mark.parametrize("ignored", [False, True])
def test_a_provider_ends_although_it_ignores_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: bool
) -> None:
    """In a background job of a script SIGINT is ignored, and so it is in every process started from there."""
    script = tmp_path / "provider.py"
    first = "signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else "pass"
    script.write_text(
        f"import signal, time\n{first}\nprint(4711, flush=True)\ntime.sleep(600)\n", encoding="utf-8"
    )
    if ignored:
        monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)
    started = PluginProcess(
        "toy", [sys.executable, str(script)], tmp_path, dict(os.environ), lambda line, is_error: None
    )
    assert started.port == 4711
    started.stop(timeout=HANG_SECONDS)
    assert started._process.returncode not in (None, 0, -signal.SIGKILL)
