"""The offline engine against recordings of Pulumi's own engine: every scenario, step by step."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.offline.replay import READS, Recorded, ToyProject, previewed, scenarios

SCENARIOS = {form: scenarios(form) for form in ("dynamic", "native")}

REPRESENTATIVE = {
    "dynamic": (
        "credentials rotate",
        "invalid input",
        "killed while creating",
        "killed while creating, refresh first",
        "protected",
        "replacement refused, create first",
    ),
    "native": (
        "dynamic stack taken over",
        "existing resource by id (get)",
        "gone",
        "ignored changes",
        "import by command",
        "made but not ready, known by its order",
        "made but not ready, known by its order, still not ready",
        "replace with dependents, delete first",
        "targets",
        "time limit given by the user",
    ),
}
"""The scenarios of `make test`: they run 99 % of the branches of the engine that all 83
scenarios run. `make test-all` runs all.

Found with branch coverage per test: always the scenario that adds most per CPU second.
"""


PARAMETERS = [
    pytest.param(form, name, marks=[] if name in REPRESENTATIVE[form] else pytest.mark.slow)
    for form, found in SCENARIOS.items()
    for name in found
]


def test_the_recordings_are_complete() -> None:
    assert {form: len(found) for form, found in SCENARIOS.items()} == {"dynamic": 36, "native": 47}
    assert all(set(REPRESENTATIVE[form]) <= set(found) for form, found in SCENARIOS.items())


@pytest.mark.parametrize(("form", "name"), PARAMETERS)
def test_scenario(form: str, name: str, tmp_path: Path, warm_python: WarmPython) -> None:
    play(ToyProject(tmp_path, form, warm_python.command), SCENARIOS[form][name])


def play(project: ToyProject, steps: list[Recorded]) -> None:
    for number, step in enumerate(steps):
        outcome = project.run(step)
        differences = compare(step, outcome)
        assert not differences, f"step {number} {json.dumps(step['do'])}:\n" + "\n".join(differences)


def compare(step: Recorded, outcome: Recorded) -> list[str]:
    """Every difference that matters, one line each. Independent resources may come in any order."""
    found = []
    if step["exit"] == 1 and outcome["exit"] == 1:
        preview = step["do"]["cmd"] == "preview"
        step, outcome = (_without_chance(each, preview=preview) for each in (step, outcome))
    # An error names the command of the engine that prints it.
    outcome = outcome | {
        "errors": [error.replace("pulumi-hosting offline ", "pulumi ") for error in outcome["errors"]]
    }
    for field in ("exit", "changes", "errors", "world"):
        if step[field] != outcome[field]:
            found.append(f"{field}: {outcome[field]!r} instead of {step[field]!r}")
    found += compare_operations(previewed(step, step["ops"]), previewed(step, outcome["ops"]))
    found += compare_calls(step, outcome["calls"])
    for field in ("resources", "pending"):
        missing, extra = _difference(step["state"][field], outcome["state"][field])
        found += [f"state lacks {item}" for item in missing] + [f"state has {item}" for item in extra]
    return found


def _without_chance(step: Recorded, *, preview: bool) -> Recorded:
    """A failed step without what depends on timing: the independent resources handled before the failure.

    Of an operation these are the unchanged ones, of a preview all.
    """
    if preview:
        calls = [call for call in step["calls"] if not call.get("preview")]
        return step | {"changes": None, "ops": [], "calls": calls}
    changes = step["changes"] and {op: count for op, count in step["changes"].items() if op != "same"}
    return step | {"changes": changes, "ops": [item for item in step["ops"] if item[0] != "same"]}


def compare_operations(expected: list[list[Any]], got: list[list[Any]]) -> list[str]:
    missing, extra = _difference(expected, got)
    if missing or extra:
        return [f"operations: {got} instead of {expected}"]
    for name in {item[1] for item in expected}:
        if [item for item in expected if item[1] == name] != [item for item in got if item[1] == name]:
            return [f"operations on {name} in another order: {got} instead of {expected}"]
    return []


def compare_calls(step: Recorded, got: list[Recorded]) -> list[str]:
    got = [call for call in got if call["method"] != "Cancel"]  # the recordings leave it out
    missing, extra = _difference(step["calls"], got)
    if step["exit"] in (1, "killed") and missing + extra:
        # Which independent resources were read before the failure depends on timing; changes do not.
        missing, extra = (
            [item for item in items if json.loads(item)["method"] not in READS] for items in (missing, extra)
        )
    return [f"call missing: {item}" for item in missing] + [f"unexpected call: {item}" for item in extra]


def _difference(expected: list[Any], got: list[Any]) -> tuple[list[str], list[str]]:
    first, second = (Counter(json.dumps(item, sort_keys=True) for item in items) for items in (expected, got))
    return list((first - second).elements()), list((second - first).elements())
