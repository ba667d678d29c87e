"""The areas of the table of operations."""

import pkgutil
import subprocess
from importlib import import_module

import pytest

from pulumi_hosting.api import operations
from pulumi_hosting.api.operations import AREAS, OPERATIONS, Operation, area_at
from pulumi_hosting.rehearsal.warm_python import PYTHON


def test_every_module_with_rows_is_an_area() -> None:
    modules = [module.name for module in pkgutil.iter_modules(operations.__path__)]
    with_rows = {
        name for name in modules if hasattr(import_module(f"{operations.__name__}.{name}"), "OPERATIONS")
    }
    assert with_rows == {*AREAS}
    assert len(AREAS) == len(with_rows)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_a_path_leads_to_the_rows_of_its_area(operation: Operation) -> None:
    assert operation in area_at(operation.path)


def test_a_strange_path_leads_nowhere() -> None:
    assert area_at("/nothing/1") == area_at("/") == ()


def test_only_the_area_of_the_path_is_loaded() -> None:
    program = (
        "import sys; from pulumi_hosting.api.operations import area_at; area_at('/ssh-keys/1'); "
        "print([name for name, module in sys.modules.items() if 'OPERATIONS' in vars(module)])"
    )
    ran = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "['pulumi_hosting.api.operations.ssh_keys']\n"
