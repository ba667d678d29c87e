"""Plays a recorded scenario on the offline engine and says what happened in the recording's own form."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi_hosting.offline import OfflineError, Stack
from pulumi_hosting.offline.display.events import Event
from tests.offline.test_secrets import PULUMI_SALT

HERE = Path(__file__).parent
DYNAMIC_TYPE = "pulumi-python:dynamic/toy:Thing"
NATIVE_TYPE = "toy:index:Thing"
STACK_RESOURCE = "toys-dev"
LOOKING = ("Configure", "CheckConfig", "DiffConfig", "Check", "Diff", "Read")
Recorded = dict[str, Any]


def scenarios(form: str) -> dict[str, list[Recorded]]:
    recorded: dict[str, list[Recorded]] = json.loads((HERE / "recordings" / f"{form}.json").read_text())
    return recorded


class Toys:
    """The toy project and the toy service of one scenario, in a folder of their own."""

    def __init__(self, folder: Path, form: str, python: Path) -> None:
        self.form = form
        self.project = folder / "project"
        self.service = folder / "service"
        shutil.copytree(HERE / "toy", self.project, ignore=shutil.ignore_patterns("__pycache__"))
        self.service.mkdir()
        plugins = folder / "bin"
        plugins.mkdir()
        plugin = plugins / "pulumi-resource-toy"
        plugin.write_text(f'#!/bin/sh\nexec {python} -u -m toykit.plugin "$@"\n')
        plugin.chmod(0o755)
        self.environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PULUMI_", "COV"))},
            "PULUMI_CONFIG_PASSPHRASE": "x",
            "PULUMI_PYTHON_CMD": str(python),
            "TOY_SERVICE": str(self.service),
            "PATH": f"{plugins}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.project),
        }
        self.program: dict[str, Any] = {"form": form, "resources": [], "outputs": {}, "order": []}
        self._write("world.json", {"things": {}, "counts": {}})
        # One salt for all: a key takes a third of a second to derive, and is kept for the next scenario.
        (self.project / "Pulumi.dev.yaml").write_text(f"encryptionsalt: {PULUMI_SALT}\n")
        self.stack().init()

    def stack(self, *listeners: Callable[[Event], None]) -> Stack:
        return Stack(self.project, "dev", environ=self.environ, listeners=listeners)

    def _write(self, name: str, data: Any) -> None:
        (self.service / name).write_text(json.dumps(data))

    # What a step sets, and what it is compared with.

    def set_up(self, step: Recorded) -> None:
        do = step["do"]
        self.program["form"] = self.form = do.get("form", self.form)
        if "program" in do:
            self.program |= {"resources": do["program"], "outputs": {}}
        if "outputs" in do:
            self.program["outputs"] = do["outputs"]
        self.program["order"] = _order(self.program["resources"], step["calls"])
        self._write("program.json", self.program)
        if "faults" in do:
            self._write("faults.json", {key: re.sub(r"^sleep:.*", "sleep:2", fault) for key, fault in do["faults"].items()})
        for id, edit in do.get("world", {}).items():
            world = json.loads((self.service / "world.json").read_text())
            if edit is None:
                world["things"].pop(id, None)
            else:
                world["things"][id] = world["things"].get(id, {}) | edit
            self._write("world.json", world)
        for key, value in do.get("config", {}).items():
            self.stack().set_config(key, value, secret=True)
        (self.service / "calls.jsonl").unlink(missing_ok=True)

    def calls(self) -> list[Recorded]:
        path = self.service / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def world(self) -> dict[str, Any]:
        things: dict[str, Any] = json.loads((self.service / "world.json").read_text())["things"]
        return things

    def state(self) -> dict[str, Any]:
        deployment = self.stack().export(show_secrets=True).get("deployment", {})
        resources = [_resource(item) for item in deployment.get("resources", [])]
        return {
            "resources": [item for item in resources if item["type"] != "pulumi:providers:pulumi-python"],
            "pending": [[item["type"], _name(item["resource"]["urn"])] for item in deployment.get("pending_operations", [])],
        }

    # Running.

    def run(self, step: Recorded) -> Recorded:
        """Do what a step says; the result has the recording's fields."""
        self.set_up(step)
        command, arguments = step["do"]["cmd"], list(step["do"].get("args", []))
        if "kill_after" in step["do"]:
            self._run_and_kill(command, step)
            happened: Recorded = {"exit": "killed", "ops": [], "changes": None, "errors": []}
        elif command == "cancel":
            self.stack().cancel()
            happened = {"exit": 0, "ops": [], "changes": None, "errors": []}
        elif command == "import":
            type, name, id, *flags = arguments
            result = self.stack().import_resource(type, name, id, protect="--protect=false" not in flags, parallel=1)
            happened = {"exit": result.exit_code, "ops": [], "changes": None, "errors": []}  # the recordings have no more of it
        else:
            happened = self._operate(command, arguments)
        return happened | {"calls": self.calls(), "state": self.state(), "world": self.world()}

    def _operate(self, command: Any, arguments: list[str]) -> Recorded:
        events: list[Event] = []
        type = NATIVE_TYPE if self.form == "native" else DYNAMIC_TYPE
        options: dict[str, Any] = {"parallel": 1}
        while arguments:
            argument = arguments.pop(0)
            if argument == "--target":
                options["targets"] = (*options.get("targets", ()), arguments.pop(0).replace("{type}", type))
            else:
                options[argument.removeprefix("--").replace("-", "_")] = True
        try:
            result = self.stack(events.append).run(command, **options)
        except OfflineError as error:
            return {"exit": error.exit_code, "ops": [], "changes": None, "errors": [str(error).split("\n")[0]]}
        return {
            "exit": result.exit_code,
            "ops": _operations(events, looking=command == "refresh"),
            "changes": result.changes,
            "errors": [_message(error) for error in result.errors],
        }

    def _run_and_kill(self, command: str, step: Recorded) -> None:
        """SIGKILL to the engine in the middle of the recorded calls; returns when the orphaned provider has finished."""
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pulumi_hosting.cli",
                "offline",
                command,
                "--stack",
                "dev",
                "--parallel",
                "1",
                "--yes",
                "--skip-preview",
            ],
            cwd=self.project,
            env={**self.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), str(self.project)])},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        saved = Counter(item["name"] for item in step["state"]["resources"])
        wanted = _doing(step["calls"])
        _wait(lambda: _doing(self.calls()) == wanted and Counter(item["name"] for item in self.state()["resources"]) == saved)
        orphans = children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        _wait(lambda: self.world() == step["world"])
        end(orphans)


def children(pid: int) -> list[int]:
    """The processes that a process has started; those of the engine lead a group each."""
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def end(leaders: list[int]) -> None:
    """End process groups that a killed engine left behind."""
    for leader in leaders:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)


def _wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def _doing(calls: list[Recorded]) -> int:
    return sum(call["method"] not in LOOKING for call in calls)


def _order(resources: list[dict[str, Any]], calls: list[Recorded]) -> list[str]:
    """Resources in the order in which the recorded provider first heard of them; the others were never registered."""
    first: dict[str, int] = {}
    for number, call in enumerate(calls):
        for item in resources:
            if _hears(call, item):
                first.setdefault(item["name"], number)
    return sorted(first, key=lambda name: first[name])


def _hears(call: Recorded, item: dict[str, Any]) -> bool:
    """Is a call the one by which a provider first hears of a resource?"""
    if item.get("kind") == "provider":
        return bool(call["method"] == "CheckConfig" and call["provider"] == item["name"])
    method = "Read" if "id" in item.get("opts", {}) else "Check"
    if "name" in call:
        return bool(call["method"] == method and call["name"] == item["name"])
    return bool(call["method"] == method and (method == "Read" or call["news"].get("name") == item["props"].get("name")))


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _resource(item: dict[str, Any]) -> dict[str, Any]:
    """A resource of an exported deployment as the recordings show it."""
    provider = item["type"].startswith("pulumi:providers:")
    result = {
        "name": _name(item["urn"]),
        "type": item["type"],
        "id": "…" if provider else item.get("id"),
        "inputs": _opened(item.get("inputs", {})),
        "outputs": _opened(item.get("outputs", {})),
    }
    for key in (
        "additionalSecretOutputs",
        "protect",
        "external",
        "retainOnDelete",
        "delete",
        "initErrors",
        "refreshBeforeUpdate",
        "customTimeouts",
    ):
        if item.get(key):
            result[key] = item[key]
    if item.get("dependencies"):
        result["dependencies"] = [_name(urn) for urn in item["dependencies"]]
    if item.get("deletedWith"):
        result["deletedWith"] = _name(item["deletedWith"])
    if item.get("parent") and _name(item["parent"]) != STACK_RESOURCE:
        result["parent"] = _name(item["parent"])
    return result


def _opened(value: Any) -> Any:
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if isinstance(value, dict):
        if "plaintext" in value:
            return {"secret": json.loads(value["plaintext"])}
        return {key: _opened(item) for key, item in value.items() if not key.startswith("__")}
    return value


def _operations(events: list[Event], *, looking: bool) -> list[list[Any]]:
    """What was announced; a preview of a refresh shows what it found."""
    found = []
    for event in events:
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            found.append([metadata["op"], _name(metadata["urn"])] + ([metadata["diffs"]] if metadata.get("diffs") else []))
        if looking and event.get("resOutputsEvent", {}).get("planning"):
            metadata = event["resOutputsEvent"]["metadata"]
            diffs = [metadata["diffs"]] if metadata.get("diffs") else []
            if metadata["op"] == "delete" or (metadata["op"] == "update" and diffs):
                refreshed = ["refresh", _name(metadata["urn"])]
                found = [[metadata["op"], item[1], *diffs] if item == refreshed else item for item in found]
    return found


def _message(error: str) -> str:
    if "Traceback" in error:
        return f"Traceback … {error.strip().splitlines()[-1].strip()}"
    return error.strip()


def visible(step: Recorded, operations: list[list[Any]]) -> list[list[Any]]:
    """Operations as a preview lists them: without the unchanged, and one for a replacement instead of three."""
    if step["do"]["cmd"] != "preview" and "--preview-only" not in step["do"].get("args", []):
        return operations
    return [item for item in operations if item[0] not in ("same", "create-replacement", "delete-replaced")]
