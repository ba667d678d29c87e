"""Runs the steps of a recorded scenario on the offline engine. The outcome has the recording's format."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi_hosting.offline import OfflineError, OfflineStack
from pulumi_hosting.offline.display.engine_events import Event
from pulumi_hosting.offline.storage.passphrase import Crypter
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.support.waiting import interruptible

HERE = Path(__file__).parent
DYNAMIC_TYPE = "pulumi-python:dynamic/toy:Thing"
NATIVE_TYPE = "toy:index:Thing"
STACK_RESOURCE = "toys-dev"
SALT = Crypter.new("x", weak=True).state
"""Of secrets that only the offline engine reads."""
READS = ("Configure", "CheckConfig", "DiffConfig", "Check", "Diff", "Read")
"""Calls of a provider that change nothing."""
Recorded = dict[str, Any]


def scenarios(form: str) -> dict[str, list[Recorded]]:
    recorded: dict[str, list[Recorded]] = json.loads((HERE / "recordings" / f"{form}.json").read_text())
    return recorded


class ToyProject:
    """A project that uses the toy provider, and the toy service, in one folder. Every process runs on
    `python`.
    """

    def __init__(self, folder: Path, form: str, python: Path, salt: str = SALT) -> None:
        self.form = form
        self.directory = folder / "project"
        self.service = folder / "service"
        shutil.copytree(HERE / "toy", self.directory, ignore=shutil.ignore_patterns("__pycache__"))
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
            "PYTHONPATH": str(self.directory),
        }
        self.program: dict[str, Any] = {"form": form, "resources": [], "outputs": {}, "order": []}
        self._write("world.json", {"things": {}, "counts": {}})
        (self.directory / "Pulumi.dev.yaml").write_text(f"encryptionsalt: {salt}\n")
        self.stack().init()

    def stack(self, *listeners: Callable[[Event], None]) -> OfflineStack:
        return OfflineStack(self.directory, "dev", environ=self.environ, listeners=listeners)

    def _write(self, name: str, data: Any) -> None:
        (self.service / name).write_text(json.dumps(data))

    def set_faults(self, **faults: str) -> None:
        """What goes wrong: `create_a="raise"`. After `hold:NAME` the provider waits for `release(NAME)`.

        `hold:NAME,raise`: it waits, then fails.
        """
        self._write("faults.json", {key.replace("_", ":", 1): fault for key, fault in faults.items()})

    def release(self, name: str) -> None:
        (self.service / f"release-{name}").touch()

    def forget_calls(self) -> None:
        (self.service / "calls.jsonl").unlink(missing_ok=True)

    # The inputs and the results of a step.

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
            # The recorded provider slept until the engine was killed.
            held = "hold:kill" if "kill_after" in do else ""
            self._write(
                "faults.json", {key: re.sub(r"^sleep:.*", held, fault) for key, fault in do["faults"].items()}
            )
        for id, edit in do.get("world", {}).items():
            world = json.loads((self.service / "world.json").read_text())
            if edit is None:
                world["things"].pop(id, None)
            else:
                world["things"][id] = world["things"].get(id, {}) | edit
            self._write("world.json", world)
        for key, value in do.get("config", {}).items():
            self.stack().set_config(key, value, secret=True)
        self.forget_calls()

    def calls(self) -> list[Recorded]:
        path = self.service / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def things(self) -> dict[str, Any]:
        things: dict[str, Any] = json.loads((self.service / "world.json").read_text())["things"]
        return things

    def state(self) -> dict[str, Any]:
        deployment = self.stack().export(show_secrets=True).get("deployment", {})
        resources = [_resource(item) for item in deployment.get("resources", [])]
        return {
            "resources": [item for item in resources if item["type"] != "pulumi:providers:pulumi-python"],
            "pending": [
                [item["type"], _name(item["resource"]["urn"])]
                for item in deployment.get("pending_operations", [])
            ],
        }

    # Running.

    def run(self, step: Recorded) -> Recorded:
        """Run one step; the result has the recording's fields."""
        self.set_up(step)
        command, arguments = step["do"]["cmd"], list(step["do"].get("args", []))
        if "kill_after" in step["do"]:
            self._run_and_kill(command, step)
            outcome: Recorded = {"exit": "killed", "ops": [], "changes": None, "errors": []}
        elif command == "cancel":
            self.stack().cancel()
            outcome = {"exit": 0, "ops": [], "changes": None, "errors": []}
        elif command == "import":
            type, name, id, *flags = arguments
            result = self.stack().import_resource(
                type, name, id, protect="--protect=false" not in flags, parallel=1
            )
            # no more is recorded
            outcome = {"exit": result.exit_code, "ops": [], "changes": None, "errors": []}
        else:
            outcome = self._operate(command, arguments)
        return outcome | {"calls": self.calls(), "state": self.state(), "world": self.things()}

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
            return {
                "exit": error.exit_code,
                "ops": [],
                "changes": None,
                "errors": [str(error).split("\n")[0]],
            }
        return {
            "exit": result.exit_code,
            "ops": _operations(events, refresh=command == "refresh"),
            "changes": result.changes,
            "errors": [_message(error) for error in result.errors],
        }

    def _run_and_kill(self, command: str, step: Recorded) -> None:
        """Kill the engine during the recorded calls; returns when the orphaned provider has finished."""
        process = self.start(command, "--parallel", "1")
        saved = Counter(item["name"] for item in step["state"]["resources"])
        changes = _changes(step["calls"])
        while (
            _changes(self.calls()) != changes
            or Counter(item["name"] for item in self.state()["resources"]) != saved
        ):
            wait_a_little(process)
        orphans = children(process.pid)
        process.kill()
        process.communicate()
        self.release("kill")
        while self.things() != step["world"] and any(map(runs, orphans)):
            time.sleep(0.01)
        end(orphans)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command on a plain Python, whose processes are its real children."""
        with interruptible():
            return subprocess.Popen(
                [
                    PYTHON,
                    "-m",
                    "pulumi_hosting.cli",
                    "offline",
                    *arguments,
                    "--stack",
                    "dev",
                    "--yes",
                    "--skip-preview",
                ],
                cwd=self.directory,
                env={
                    **self.environ,
                    "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), str(self.directory)]),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def wait_for(self, method: str, process: subprocess.Popen[str]) -> None:
        """Return when the provider is called; fails when the command ends before."""
        while all(call["method"] != method for call in self.calls()):
            wait_a_little(process)


def wait_a_little(process: subprocess.Popen[str]) -> None:
    assert process.poll() is None, f"the command ended too early: {process.communicate()[0]}"
    time.sleep(0.01)


def children(pid: int) -> list[int]:
    """The processes that a process has started; each of the engine's leads a group."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def runs(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[-1].split()[0] != "Z"


def end(leaders: list[int]) -> None:
    """Kill the process groups that a killed engine left behind."""
    for leader in leaders:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)


def _changes(calls: list[Recorded]) -> int:
    return sum(call["method"] not in READS for call in calls)


def _order(resources: list[dict[str, Any]], calls: list[Recorded]) -> list[str]:
    """Resources in the order of the provider's first call for each; the others were never registered."""
    first: dict[str, int] = {}
    for number, call in enumerate(calls):
        for item in resources:
            if _is_first_call(call, item):
                first.setdefault(item["name"], number)
    return sorted(first, key=lambda name: first[name])


def _is_first_call(call: Recorded, item: dict[str, Any]) -> bool:
    """Whether a call is the one that the engine begins with for a resource."""
    if item.get("kind") == "provider":
        return bool(call["method"] == "CheckConfig" and call["provider"] == item["name"])
    method = "Read" if "id" in item.get("opts", {}) else "Check"
    if "name" in call:
        return bool(call["method"] == method and call["name"] == item["name"])
    return bool(
        call["method"] == method
        and (method == "Read" or call["news"].get("name") == item["props"].get("name"))
    )


def _name(urn: str) -> str:
    return urn.rsplit("::", 1)[-1]


def _resource(item: dict[str, Any]) -> dict[str, Any]:
    """A resource of an exported deployment in the recordings' format."""
    provider = item["type"].startswith("pulumi:providers:")
    result = {
        "name": _name(item["urn"]),
        "type": item["type"],
        "id": "…" if provider else item.get("id"),
        "inputs": _decrypted(item.get("inputs", {})),
        "outputs": _decrypted(item.get("outputs", {})),
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


def _decrypted(value: Any) -> Any:
    if isinstance(value, list):
        return [_decrypted(item) for item in value]
    if isinstance(value, dict):
        if "plaintext" in value:
            return {"secret": json.loads(value["plaintext"])}
        return {key: _decrypted(item) for key, item in value.items() if not key.startswith("__")}
    return value


def _operations(events: list[Event], *, refresh: bool) -> list[list[Any]]:
    """The operations in the order announced; a preview of a refresh shows what it found."""
    found = []
    for event in events:
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            found.append(
                [metadata["op"], _name(metadata["urn"])]
                + ([metadata["diffs"]] if metadata.get("diffs") else [])
            )
        if refresh and event.get("resOutputsEvent", {}).get("planning"):
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


def previewed(step: Recorded, operations: list[list[Any]]) -> list[list[Any]]:
    """Operations as a preview lists them: no unchanged ones, and one for a replacement instead of three."""
    if step["do"]["cmd"] != "preview" and "--preview-only" not in step["do"].get("args", []):
        return operations
    return [item for item in operations if item[0] not in ("same", "create-replacement", "delete-replaced")]
