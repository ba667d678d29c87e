"""Unit tests of programs with ``pulumi.runtime.set_mocks``: every resource and lookup, without a key."""

import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import pytest

from pulumi_hosting.provider.names import camel
from pulumi_hosting.provider.names import class_of as class_name
from pulumi_hosting.provider.resource_shape import outputs_of
from pulumi_hosting.rehearsal.warm_python import WarmPython
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.provider.fake_engine import FORMS, TOKENS, Engine, class_of, declared, revealed, sample, unrecorded
from tests.provider.test_invoke import settled

PAGE = Path(__file__).parents[2] / "docs" / "unit-testing.md"


@pytest.fixture
def mocks(monkeypatch: pytest.MonkeyPatch) -> Engine:
    for variable in ("HOSTING_API_KEY", "HOSTING_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    return Engine(unit_test=True)


def test_mocks_see_what_the_program_declares_and_nothing_else(mocks: Engine, form: str, kind: str) -> None:
    timeouts = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="5m"))
    mocks.run(lambda: class_of(form, kind)("main", **declared(kind), opts=timeouts))
    (made,) = mocks.recorded.made
    assert (made.typ, made.name) == (TOKENS[form].format(class_name(kind)), "main")
    assert {name: revealed(value) for name, value in made.inputs.items()} == {
        camel(name): value for name, value in declared(kind).items()
    }


def test_what_mocks_answer_are_the_outputs(mocks: Engine, form: str, kind: str) -> None:
    shown = {field.name: sample(field.type, field.name) for field in outputs_of(RESOURCES[kind])}
    mocks.recorded.outputs = {camel(name): value for name, value in shown.items()}
    made = mocks.run(lambda: class_of(form, kind)("main", **declared(kind)))
    for name, value in shown.items():
        assert unrecorded(mocks.run(partial(getattr, made, name))) == value


def test_a_list_of_tariffs_is_no_output(mocks: Engine, form: str) -> None:
    given = {**declared("server"), "tariff_id": None, "tariff": ["VDS-2", "VDS-3"]}
    made = mocks.run(lambda: class_of(form, "server")("main", **given))
    assert mocks.recorded.made[0].inputs["tariffs"] == ["VDS-2", "VDS-3"]
    assert mocks.run(lambda: made.tariff) is None
    mocks.recorded.outputs = {"tariff": "VDS-3"}
    other = mocks.run(lambda: class_of(form, "server")("other", **given))
    assert mocks.run(lambda: other.tariff) == "VDS-3"


def test_an_object_that_is_looked_up_is_asked_of_the_mocks(mocks: Engine, form: str, kind: str) -> None:
    mocks.run(lambda: class_of(form, kind).get("old", "815"))
    (made,) = mocks.recorded.made
    assert (made.resource_id, made.inputs) == ("815", {})


@pytest.mark.parametrize("name", LOOKUPS)
def test_mocks_answer_every_lookup(mocks: Engine, form: str, name: str) -> None:
    lookup = LOOKUPS[name]
    found = sample(lookup.value, lookup.name)
    mocks.recorded.answer = lambda token, args: (
        found if lookup.single is None else {camel(lookup.single): found}
    )
    given = {item.name: sample(item.type, item.name) for item in lookup.arguments}
    now = mocks.run(partial(_function(form, lookup.name), **given))
    later = {key: pulumi.Output.from_input(value) for key, value in given.items()}
    then = mocks.run(partial(_function(form, f"{lookup.name}_output"), **later))
    assert settled(unrecorded(now)) == settled(unrecorded(then)) == settled(found)
    assert [asked.token for asked in mocks.recorded.asked] == [f"hosting:index:{name}"] * 2
    expected = {camel(key): value for key, value in given.items()}
    assert [asked.args for asked in mocks.recorded.asked] == [expected] * 2


def _function(form: str, name: str) -> Any:
    module: Any = FORMS[form] if form == "native" else __import__("pulumi_hosting")
    return getattr(module, name)


def test_an_answer_of_another_shape_says_which_is_expected(mocks: Engine, form: str) -> None:
    with pytest.raises(
        pulumi.RunError, match=re.escape("get_tariffs: the answer has no 'tariffs'. Next: return {'t")
    ):
        _function(form, "get_tariffs")()


def test_an_error_of_the_test_itself_is_not_changed(mocks: Engine, form: str) -> None:
    def answer(token: str, args: Any) -> Any:
        raise ZeroDivisionError

    mocks.recorded.answer = answer
    with pytest.raises(ZeroDivisionError):
        _function(form, "get_tariffs")()


@pytest.mark.parametrize("package", ["pulumi_hosting", "pulumi_hosting.native"])
def test_the_documented_example(package: str, warm: WarmPython, tmp_path: Path) -> None:
    program, test, *_ = re.findall(
        r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    for name, text in (program, test):
        (tmp_path / name).write_text(text.replace("import pulumi_hosting as", f"import {package} as"))
    command = [str(warm.command), "-m", "pytest", "-q", "-p", "no:cacheprovider", test[0]]
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}
    )
    assert run.returncode == 0, run.stdout
    assert "3 passed" in run.stdout
