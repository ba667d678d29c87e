"""``python -m tools.measures --check``: the walks of a value stay within their limits, and the page shows
them as they are.
"""

from pathlib import Path

import pytest

from tools.measures import __main__ as measures
from tools.measures import frontends
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
    page.write_text(f"{measures.BEGIN}\n{measures.END}\n", encoding="utf-8")
    monkeypatch.setattr(measures, "PAGE", page)
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
