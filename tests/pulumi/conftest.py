"""Dynamic and native programs on every engine, against an emulator."""

from pathlib import Path

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import Engine
from tests.support.programs import FORMS, Program, make_program


@pytest.fixture
def dynamic(engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    """A program of dynamic resources."""
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "dynamic")


@pytest.fixture
def native(engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    """A program of the native provider."""
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """``dynamic`` and ``native`` in ``make test-all``. ``make test`` runs what is ``daily``, in both if the
    test is marked ``both_providers``, else ``native``.
    """
    name: str = request.param
    return name


@pytest.fixture
def program(form: str, engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    """A program of the form."""
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", form)


DAILY = {("dynamic", "spec"), ("native", "live")}
"""The pairs of form and dialect that ``make test`` runs of a test that asks for both; the others are
``slow``.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``slow`` the forms and pairs that ``make test`` need not run: its tests prove once what
    does not depend on the form.
    """
    for item in items:
        given = (
            item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        )
        if "form" not in given:
            continue
        in_both = item.get_closest_marker("both_providers") is not None
        if "dialect" in given:
            daily = (given["form"], given["dialect"]) in DAILY and (in_both or given["form"] == "native")
        else:
            daily = in_both or given["form"] == "native"
        if not daily:
            item.add_marker(pytest.mark.slow)
