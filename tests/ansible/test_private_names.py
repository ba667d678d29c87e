"""The private names of ansible-core that the collection uses: each is there, and none is used that is not
listed here. Where one is missing, Ansible fails a task or an inventory loudly; a callback has to stop the run
itself."""

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible.playbook import Playbook
from ansible.playbook.task import Task
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.hosting.cloud.plugins.callback import drift
from tests.ansible.conftest import COLLECTION

OWN_FILES = [
    path
    for folder in ("callback", "inventory", "module_utils", "plugin_utils")
    for path in sorted((COLLECTION / "plugins" / folder).glob("*.py"))
]


class Action(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """An action plugin that does nothing."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        return {}


class Inventory(BaseInventoryPlugin, Constructable, Cacheable):  # type: ignore[misc]  # the same
    """An inventory plugin without hosts."""


def action() -> Action:
    return Action(
        task=Task(), connection=None, play_context=None, loader=None, templar=None, shared_loader_obj=None
    )


PRIVATE = {
    "controller_action.py": {
        "_compute_environment_string": action,
        "_connection": action,
        "_display": action,
        "_execute_module": action,
        "_no_log_values": lambda: ArgumentSpecValidator({}).validate({}),
        "_play_context": action,
        "_task": action,
        "_uuid": Task,
    },
    "drift.py": {
        "_display": CallbackBase,
        "_file_name": lambda: Playbook(DataLoader()),
        "_get_item_label": CallbackBase,
        "_uuid": Task,
    },
    "servers.py": dict.fromkeys(
        [
            "_add_host_to_composed_groups",
            "_add_host_to_keyed_groups",
            "_compose",
            "_read_config_data",
            "_sanitize_group_name",
            "_set_composite_vars",
            "_vars",
        ],
        Inventory,
    ),
}
"""Who has the name, by file and name."""
IN_SOURCE = {
    "module_process.py": {"_diff": AnsibleModule},
    "servers.py": {"_cache": Cacheable},
}
"""Those that an object has only once it works: its class sets them."""
OVERRIDDEN = {
    AnsibleModule: ["_load_params", "_log_invocation"],
    ActionBase: ["_requires_connection", "_supports_async", "_supports_check_mode"],
}
"""Names that Ansible itself asks for: under another name ours would mean nothing."""


def used(path: Path) -> set[str]:
    """The private names that a file reads of others: neither its own nor those of another file of ours."""
    own = {"_ip"}  # of the resource ptr
    read: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
        elif isinstance(node, ast.Attribute):
            (own if isinstance(node.ctx, ast.Store) else read).add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_private":
            read |= {str(item.value) for item in node.args if isinstance(item, ast.Constant)}
    return {name for name in read - own if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize("path", OWN_FILES, ids=lambda path: path.name)
def test_every_private_name_is_listed(path: Path) -> None:
    assert used(path) == {*PRIVATE.get(path.name, ()), *IN_SOURCE.get(path.name, {})}


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file, names in PRIVATE.items() for name in names], ids=str
)
def test_ansible_has_the_private_name(file: str, name: str) -> None:
    assert hasattr(PRIVATE[file][name](), name)


def test_ansible_asks_for_the_names_that_plugins_set() -> None:
    for kind, names in OVERRIDDEN.items():
        for name in names:
            assert hasattr(kind, name), name
    for file in IN_SOURCE.values():
        for name, kind in file.items():
            assert f"self.{name} = " in inspect.getsource(kind)
    assert "raw_environment_out" in inspect.signature(ActionBase._compute_environment_string).parameters


def test_the_callback_stops_a_run_without_a_private_name() -> None:
    """A warning would be overlooked: the run would exit with 0."""
    with pytest.raises(
        SystemExit, match=r"hosting\.cloud\.drift: SimpleNamespace of .* has no _uuid\. Next: "
    ):
        drift._key(SimpleNamespace(_host=SimpleNamespace(get_name=lambda: "web"), _task=SimpleNamespace()))
    with pytest.raises(SystemExit, match="has no _file_name"):
        drift.CallbackModule().v2_playbook_on_start(SimpleNamespace())
