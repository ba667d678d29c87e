"""``python -m tools.measures --check``: walks, counts and lines of each folder stay within their limits, and
the page shows them as they are.
"""

import ast
import subprocess
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from tools.measures import __main__ as measures
from tools.measures import code, frontends, guard, max_charge, refresh
from tools.measures.limits import BUDGETS, LIMITS
from tools.measures.walk import Hop, Walk


def walk(hops: int, changes: int) -> Walk:
    """A walk of so many functions, the first of which makes all changes."""
    first = Hop("f0", [f"change {number}" for number in range(changes)])
    return Walk([first, *(Hop(f"f{number}", []) for number in range(1, hops))], [])


@pytest.mark.parametrize(
    ("pulumi", "ansible", "problem"),
    [
        ((15, 5), (12, 4), ""),
        ((16, 5), (12, 4), "the walk of Pulumi has 16 hops, at most 15 are allowed"),
        ((15, 6), (12, 4), "the walk of Pulumi has 6 changes, at most 5 are allowed"),
        ((15, 5), (13, 4), "the walk of Ansible has 13 hops, at most 12 are allowed"),
        ((15, 5), (12, 5), "the walk of Ansible has 5 changes, at most 4 are allowed"),
    ],
)
def test_a_walk_over_a_limit_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pulumi: tuple[int, int],
    ansible: tuple[int, int],
    problem: str,
) -> None:
    page = tmp_path / "ARCHITECTURE.md"
    marks = (measures.SIZES_BEGIN, measures.SIZES_END, measures.BEGIN, measures.END)
    page.write_text("\n".join([*marks, ""]), encoding="utf-8")
    small = code.Counts(lines=Counter(dict.fromkeys(BUDGETS, 1)), lengths=[1], with_docstring=1)
    monkeypatch.setattr(measures, "PAGE", page)
    monkeypatch.setattr(code, "count", lambda root: small)
    monkeypatch.setattr(max_charge, "readers", lambda root: [])
    monkeypatch.setattr(refresh, "refresh_walk", refresh.Arrival)
    monkeypatch.setattr(frontends, "pulumi_walk", lambda: walk(*pulumi))
    monkeypatch.setattr(frontends, "ansible_walk", lambda: walk(*ansible))
    assert run(monkeypatch, "--check") == 1
    assert "out of date" in capsys.readouterr().err
    assert run(monkeypatch, "--write") == 0
    assert run(monkeypatch, "--check") == (1 if problem else 0)
    shown = capsys.readouterr().err.strip()
    assert shown.startswith(problem) if problem else not shown


def run(monkeypatch: pytest.MonkeyPatch, option: str) -> int:
    monkeypatch.setattr("sys.argv", ["measures", option])
    return measures.main()


def test_a_measure_or_a_folder_over_its_limit_fails() -> None:
    now = {name: limit.most for name, limit in LIMITS.items()}
    lines = {folder: budget.most for folder, budget in BUDGETS.items()}
    assert guard.over_limit(now, lines) == []
    for name, limit in LIMITS.items():
        (problem,) = guard.over_limit({**now, name: limit.most + 1}, lines)
        assert problem.startswith(f"{name}: {limit.most + 1}, at most {limit.most} are allowed. Next: ")
    for folder, budget in BUDGETS.items():
        (problem,) = guard.over_limit(now, {**lines, folder: budget.most + 1})
        assert problem.startswith(f"{folder} has {budget.most + 1} lines of code, at most {budget.most} ")
        (problem,) = guard.over_limit(now, {name: count for name, count in lines.items() if name != folder})
        assert problem.startswith(f"{folder} has a budget and no code. Next: ")
    (problem,) = guard.over_limit(now, {**lines, "pulumi_hosting/new": 1})
    assert problem.startswith("pulumi_hosting/new has no budget of lines. Next: ")


def test_the_page_may_show_an_older_now_and_no_other_limit() -> None:
    now = {name: limit.most for name, limit in LIMITS.items()}
    lines = {folder: budget.most for folder, budget in BUDGETS.items()}
    page = guard.tables(now, lines)
    fewer = guard.tables(dict.fromkeys(now, 0), dict.fromkeys(lines, 1))
    assert page != fewer
    assert guard.without_now(page) == guard.without_now(fewer)
    most = LIMITS["uses of `Any`"].most
    assert guard.without_now(page) != guard.without_now(page.replace(f"| {most:,} | 900 |", "| 1 | 900 |"))


MODULE = dedent(
    '''
    """A module.

    Of two paragraphs."""

    # a comment
    from typing import Any

    VALUE = """
    text
    """
    """What it is."""


    class Thing:
        """A class."""

        def act(self, given: Any) -> "list[Any]":
            """What it does."""
            import os

            return [
                given,  # a comment behind code

                os,
            ]


    def bare(): import sys; return lambda: sys
    '''
)


def test_lines_of_code_are_without_docstrings_comments_and_blank_lines() -> None:
    # the import, the text of three lines, class, act, import, a return of four lines, bare
    assert code.lines_of_code(MODULE, ast.parse(MODULE)) == 1 + 3 + 1 + 1 + 1 + 4 + 1


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A product of a few files, tracked by git."""
    generated = f"# Generated by `make generate`: do not edit.\n{MODULE}"
    files = {
        "pulumi_hosting/top.py": "class Thing: ...\n",
        "pulumi_hosting/area/module.py": MODULE,
        "pulumi_hosting/area/deep/generated.py": generated,
        "ansible_collections/hosting/cloud/plugins/modules/server.py": f"#!/usr/bin/python\n{generated}",
        "ansible_collections/hosting/cloud/plugins/module_utils/task.py": dedent(
            """
            class Task:
                def limit(self): return self.params.get("max_charge")
                def is_limited(self): return "max_charge" in self.params
                def carries(self, max_charge): return self.book(max_charge, limit=self.limit)
                def asks(self, task): return task.limit()
                def refuses(self): return {"max_charge": "why"}
            class RunBudget:
                def refusal(self): return self.limit
            """
        ),
        "ansible_collections/hosting/cloud/tests/unit/test_it.py": MODULE,
        "tools/tool.py": MODULE,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def test_a_checkout_is_counted_without_generated_files_and_tests(checkout: Path) -> None:
    counts = code.count(checkout)
    assert counts.lines == {"pulumi_hosting": 1, "pulumi_hosting/area": 12, "ansible_collections": 8}
    assert counts.anys == 1  # the other one is a text
    assert counts.imports_in_functions == 2
    assert counts.doubled == ["Thing"]
    assert len(counts.lengths) == 8
    assert counts.undocumented == round(100 * 7 / 8)
    assert counts.long == 1


def test_readers_of_max_charge_take_it_out_of_its_place(checkout: Path) -> None:
    found = max_charge.readers(checkout)
    assert found == [
        f"module_utils/task.py {name}"
        for name in ("Task.limit", "Task.is_limited", "Task.asks", "RunBudget.refusal")
    ]
    assert max_charge.folders([*found, "planning/budget.py Budget.refusal"]) == {"module_utils", "planning"}


def test_a_refresh_is_followed_from_the_answer_to_the_state() -> None:
    walk = refresh.refresh_walk()
    assert {name.partition("/")[0] for name in (walk.functions[0], walk.functions[-1])} == {
        "client",
        "provider",
    }
    assert {"client/client.py Client.call", "provider/adapter.py Adapter.read"} < set(walk.functions)
    assert walk.longest[0] > 20


def test_a_return_is_a_step_into_a_folder_that_was_left() -> None:
    def step(folder: str) -> object:
        return compile("0", f"/x/pulumi_hosting/{folder}/file.py", "eval")

    walk = refresh.Arrival()
    walk.steps = [step(name) for name in ("client", "client", "session", "client", "provider", "session")]  # type: ignore[misc]  # code objects
    assert walk.returns == 2
