"""The offline engine against what Pulumi's own engine was seen doing: every recorded scenario, step by step."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.offline.replay import LOOKING, Recorded, Toys, scenarios, visible
from tests.support.warm import WarmPython

DYNAMIC = scenarios("dynamic")
NATIVE = scenarios("native")

NOT_YET_DYNAMIC: tuple[str, ...] = ()
NOT_YET_NATIVE: tuple[str, ...] = ()


def test_every_scenario_is_played_or_named_as_missing() -> None:
    assert set(NOT_YET_DYNAMIC) <= set(DYNAMIC)
    assert set(NOT_YET_NATIVE) <= set(NATIVE)
    assert len(DYNAMIC) == 36
    assert len(NATIVE) == 47


@pytest.mark.parametrize("name", [name for name in DYNAMIC if name not in NOT_YET_DYNAMIC])
def test_dynamic_scenario(name: str, tmp_path: Path, warm_python: WarmPython) -> None:
    play(Toys(tmp_path, "dynamic", warm_python.command), DYNAMIC[name])


@pytest.mark.parametrize("name", [name for name in NATIVE if name not in NOT_YET_NATIVE])
def test_native_scenario(name: str, tmp_path: Path, warm_python: WarmPython) -> None:
    play(Toys(tmp_path, "native", warm_python.command), NATIVE[name])


def play(toys: Toys, steps: list[Recorded]) -> None:
    for number, step in enumerate(steps):
        happened = toys.run(step)
        differences = compare(step, happened)
        assert not differences, f"step {number} {json.dumps(step['do'])}:\n" + "\n".join(differences)


def compare(step: Recorded, happened: Recorded) -> list[str]:
    """Every difference that matters, in words. Independent resources may come in any order."""
    found = []
    if step["exit"] == 1 and happened["exit"] == 1:
        step, happened = (_without_unchanged(each) for each in (step, happened))
    # An error names the command of the engine that prints it.
    happened = happened | {"errors": [error.replace("pulumi-hosting offline ", "pulumi ") for error in happened["errors"]]}
    for field in ("exit", "changes", "errors", "world"):
        if step[field] != happened[field]:
            found.append(f"{field}: {happened[field]!r} instead of {step[field]!r}")
    found += compare_operations(visible(step, step["ops"]), visible(step, happened["ops"]))
    found += compare_calls(step, happened["calls"])
    for field in ("resources", "pending"):
        missing, extra = _difference(step["state"][field], happened["state"][field])
        found += [f"state lacks {item}" for item in missing] + [f"state has {item}" for item in extra]
    return found


def _without_unchanged(step: Recorded) -> Recorded:
    """How many unchanged resources had been seen when another one failed is chance."""
    changes = step["changes"] and {op: count for op, count in step["changes"].items() if op != "same"}
    return step | {"changes": changes, "ops": [item for item in step["ops"] if item[0] != "same"]}


def compare_operations(wanted: list[list[Any]], got: list[list[Any]]) -> list[str]:
    missing, extra = _difference(wanted, got)
    if missing or extra:
        return [f"operations: {got} instead of {wanted}"]
    for name in {item[1] for item in wanted}:
        if [item for item in wanted if item[1] == name] != [item for item in got if item[1] == name]:
            return [f"operations on {name} in another order: {got} instead of {wanted}"]
    return []


def compare_calls(step: Recorded, got: list[Recorded]) -> list[str]:
    missing, extra = _difference(step["calls"], got)
    if step["exit"] in (1, "killed") and missing + extra:
        # How far independent resources had been looked at when it broke off is chance. What was done to them is not.
        missing, extra = ([item for item in items if json.loads(item)["method"] not in LOOKING] for items in (missing, extra))
    return [f"call missing: {item}" for item in missing] + [f"call too many: {item}" for item in extra]


def _difference(wanted: list[Any], got: list[Any]) -> tuple[list[str], list[str]]:
    first, second = (Counter(json.dumps(item, sort_keys=True) for item in items) for items in (wanted, got))
    return list((first - second).elements()), list((second - first).elements())
