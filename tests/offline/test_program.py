"""The program runner, in this process, against services that only take notes."""

import asyncio
import contextvars
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto.engine_pb2_grpc import add_EngineServicer_to_server
from pulumi.runtime.proto.resource_pb2_grpc import add_ResourceMonitorServicer_to_server

from pulumi_hosting.offline.display.engine_events import Event, Events
from pulumi_hosting.offline.engine import run_program as program
from pulumi_hosting.offline.engine.engine_service import EngineService, serve_grpc
from pulumi_hosting.offline.engine.monitor import Monitor
from pulumi_hosting.offline.engine.run_options import Options
from pulumi_hosting.offline.generator.decisions import Decision
from pulumi_hosting.offline.model.goals import Goal
from pulumi_hosting.offline.model.property_values import Properties
from pulumi_hosting.offline.model.state import ResourceState
from pulumi_hosting.offline.model.urns import make_urn


class Notes:
    """Stands where the deployment stands: whatever is registered is there at once."""

    stack, project, preview = "dev", "toys", False
    config: Properties = {"toys:size": "large"}  # noqa: RUF012  never changed
    options = Options("up", parallel=2)

    def __init__(self) -> None:
        self.goals: list[Goal] = []
        self.outputs: Properties = {}
        self.logged: list[tuple[str, str]] = []

    def register(self, goal: Goal) -> Decision:
        self.goals.append(goal)
        type, inputs = goal.state.type, goal.state.inputs
        return Decision([], ResourceState(make_urn("dev", "toys", "", type, goal.name), type, outputs=inputs))

    def take(self, event: Event) -> None:
        said = event["diagnosticEvent"]
        self.logged.append((said["severity"], said["message"].rstrip("\n")))

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        self.outputs = outputs


Run = Callable[[str], tuple[int, Notes]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PULUMI_CONFIG", '{"toys:size": "large"}')
    notes = Notes()
    deployment: Any = notes
    monitor = Monitor(deployment)
    monitor.release()
    monitor_server, monitor_address = serve_grpc(add_ResourceMonitorServicer_to_server, monitor, threads=8)
    log = EngineService(Events([notes.take]))
    engine_server, engine_address = serve_grpc(add_EngineServicer_to_server, log, threads=8)

    def start(source: str) -> tuple[int, Notes]:
        if source:
            (tmp_path / "__main__.py").write_text(source)
        settings = {
            "project": "toys",
            "stack": "dev",
            "organization": "organization",
            "root_directory": str(tmp_path),
            "parallel": 2,
            "monitor": monitor_address,
            "engine": engine_address,
        }
        # Pulumi's settings live in the context: what this program receives reaches no other.
        status = contextvars.Context().run(program.run, settings, str(tmp_path), str(tmp_path))
        return status, notes

    yield start
    asyncio.set_event_loop(None)
    monitor_server.stop(0).wait()
    engine_server.stop(0).wait()


def test_a_program_registers_its_stack_and_outputs(run: Run) -> None:
    status, notes = run("import pulumi\npulumi.export('size', pulumi.Config().require('size'))")
    assert status == 0
    assert [(goal.state.type, goal.name) for goal in notes.goals] == [("pulumi:pulumi:Stack", "toys-dev")]
    assert notes.outputs == {"size": "large"}


def test_the_version_of_a_provider_depends_on_nothing(run: Run) -> None:
    """As in Pulumi, which adds it after it has said what the properties depend on."""
    _, notes = run(
        "import pulumi\npulumi.ProviderResource('toy', 'p', {}, pulumi.ResourceOptions(version='1.2.3'))"
    )
    provider = notes.goals[-1].state
    assert (provider.inputs, provider.property_dependencies) == ({"version": "1.2.3"}, {})


def test_a_run_error(run: Run) -> None:
    status, notes = run("import pulumi\nraise pulumi.RunError('choose a region')")
    assert status == program.ALREADY_REPORTED
    assert ("error", "choose a region") in notes.logged


def test_a_traceback_starts_in_the_program(run: Run, tmp_path: Path) -> None:
    status, notes = run("def plan():\n    raise LookupError('no such plan')\nplan()")
    assert status == program.ALREADY_REPORTED
    ((_, message),) = [said for said in notes.logged if said[0] == "error"]
    lines = message.splitlines()
    assert lines[:2] == ["Program failed with an unhandled exception:", "Traceback (most recent call last):"]
    assert lines[2] == f'  File "{tmp_path}{os.sep}__main__.py", line 3, in <module>'
    assert lines[-1] == "LookupError: no such plan"


def test_a_traceback_outside_the_program_is_complete(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("x")
    assert "test_program.py" in program.user_traceback(raised.value, str(tmp_path))


def test_a_missing_program(run: Run, tmp_path: Path) -> None:
    status, notes = run("")
    assert status == program.ALREADY_REPORTED
    assert ("error", f"unable to find main python program `__main__.py` in `{tmp_path}`") in notes.logged


def test_a_program_without_its_engine_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    program.end_with(-1)
    assert ended == [1]
