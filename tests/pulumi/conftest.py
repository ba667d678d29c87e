"""Programs of both forms on every engine, against an emulator."""

from pathlib import Path

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import Engine
from tests.support.programs import FORMS, Program, make_program


@pytest.fixture
def program(engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    """A program of dynamic resources."""
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home")


@pytest.fixture
def native(engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    """A program of the native provider."""
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")


@pytest.fixture(params=FORMS)
def formed(request: pytest.FixtureRequest, engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    """A program, once in each form."""
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", request.param)


DAILY = {("dynamic", "spec"), ("native", "live")}
"""The pairs of form and dialect that every run of the tests takes; the others are ``slow``."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if {"formed", "dialect"} <= given.keys() and (given["formed"], given["dialect"]) not in DAILY:
            item.add_marker(pytest.mark.slow)
        if {"formed", "orphan"} <= given.keys() and (given["formed"] == "native") != given["orphan"]:
            item.add_marker(pytest.mark.slow)  # each form is killed in one of the two ways
