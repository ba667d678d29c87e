"""What Ansible's own process loads for the tasks of a module, and what a worker process then still loads.
Each in a new Python; no playbook is run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from tests.ansible.conftest import ansible_environ

WORKER = """
import importlib, json, os, sys
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

module, options = sys.argv[1], json.loads(sys.argv[2])
plugins = "ansible_collections.hosting.cloud.plugins"
importlib.import_module(f"{plugins}.action.{module}")
loaded = {name for name, found in sys.modules.items() if found is not None}

from pydantic import BaseModel

def built(kind=BaseModel):
    own = {kind.__name__} if kind.__dict__.get("__pydantic_complete__") else set()
    return own.union(*map(built, kind.__subclasses__()))

models = built()
tools = importlib.import_module(f"{plugins}.module_utils.task")
memory = importlib.import_module(f"{plugins}.module_utils.run_memory")
MODULE = importlib.import_module(f"{plugins}.modules.{module}").MODULE
given = {"api_key": os.environ["HOSTING_API_KEY"], "base_url": os.environ["HOSTING_BASE_URL"], **options}
params = ArgumentSpecValidator(MODULE.argument_spec, **MODULE.rules).validate(given).validated_parameters
known = memory.RunMemory.of_controller({}, check_mode=False)
result = MODULE.answer(tools.ModuleTask(params, frozenset(given), False, False, known, None))
print(json.dumps({
    "loaded": sorted(loaded), "more": sorted(sys.modules.keys() - loaded), "built": sorted(models),
    "built_later": sorted(built() - models), "result": result,
}))
"""
NOT_FOR_TASKS = (
    "click",
    "grpc",
    "jsonschema",
    "pulumi",
    "pulumi_hosting.cli",
    "pulumi_hosting.emulator",
    "pulumi_hosting.offline",
    "pulumi_hosting.provider.adapter",
    "pulumi_hosting.rehearsal",
    "pulumi_hosting.reports",
    "pulumi_hosting.webhooks",
    "rich",
    "starlette",
)
WEB = {"name": "web-1", "tariff_id": 1, "os": "debian-12", "months": 1}


def worked(emulator: Any, home: Path, module: str, **options: Any) -> dict[str, Any]:
    """What a process loaded for this module, and what its first task then loaded."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER, module, json.dumps(options)],
        env={**ansible_environ(emulator, home), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert "failure" not in found["result"], found["result"]
    return found


@pytest.mark.parametrize(
    ("module", "options", "unused"),
    [
        ("server", WEB, ["actions", "resources.domain", "resources.ssh_key", "schema"]),
        ("server_info", {}, ["actions", "resources.domain", "resources.ssh_key", "schema"]),
        ("ssh_key_info", {}, ["actions", "resources.domain", "resources.server", "schema"]),
        ("balance_info", {}, ["actions", "resources.domain", "resources.server"]),
    ],
)
def test_what_a_task_uses_is_loaded_before_it_and_nothing_else(
    emulator: Any, tmp_path: Path, module: str, options: dict[str, Any], unused: list[str]
) -> None:
    with Client(emulator.live_key, emulator.base_url) as client:
        if module == "server":  # it exists: nothing changes
            client.servers.create(**options)
    found = worked(emulator, tmp_path, module, **options)
    not_used = (*NOT_FOR_TASKS, *(f"pulumi_hosting.{name}" for name in unused))
    everything = {*found["loaded"], *found["more"]}
    assert not {name for name in everything if name in not_used or name.partition(".")[0] in not_used}
    assert "pulumi_hosting.client.client" in found["loaded"]
    more = {name for name in found["more"] if name.startswith(("pulumi_hosting.", "pydantic", "httpcore"))}
    assert more <= {"pulumi_hosting.client.order_wait", "pulumi_hosting.client.services.orders"}
    # bodies of writes: of most tasks nothing has changed
    assert {*found["built_later"]} <= {"ServerCreate", "ServerUpdate"}


def test_models_that_the_tasks_of_a_module_do_not_use_are_not_built(emulator: Any, tmp_path: Path) -> None:
    found = worked(emulator, tmp_path, "ssh_key_info")
    assert {"SshKey", "SshKeyState", "Me"} <= {*found["built"]}
    assert not {"Server", "Domain", "DomainState", "Invoice", "ServerState"} & {*found["built"]}


def test_without_the_package_the_action_plugins_load_all_the_same(tmp_path: Path) -> None:
    code = (
        "import importlib, sys\n"
        "sys.modules['pulumi_hosting'] = None\n"
        "plugin = importlib.import_module('ansible_collections.hosting.cloud.plugins.action.server')\n"
        "assert plugin.ActionModule and 'httpx' not in sys.modules"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(root)}, check=True)
