"""The examples in docstrings of the package are run."""

import doctest
import importlib
import inspect
import pkgutil

import pulumi_hosting

RUN_AS_PROGRAMS = ("__main__",)


def test_the_examples_in_docstrings_hold() -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(pulumi_hosting.__path__, "pulumi_hosting.")
        if module.name.rpartition(".")[2] not in RUN_AS_PROGRAMS
    ]
    modules = [importlib.import_module(name) for name in names]
    results = [doctest.testmod(module) for module in modules if ">>>" in inspect.getsource(module)]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 30
