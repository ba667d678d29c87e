"""A sample of the kill matrix; ``make prove`` runs all of it."""

from pathlib import Path

import pytest

from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.crash.cases import ANSIBLE, PULUMI, Case, cases
from tests.crash.cell import Cell, reference, run
from tests.crash.killing import READ_POINTS, WRITE_POINTS, Point
from tests.crash.killing_server import Exchange, KillingServer, Victim
from tests.crash.pairs import sample
from tests.crash.processes import ENGINE_POINTS, chosen
from tests.crash.real_frontends import AnsibleFrontend

PARTS = 8
DAILY = 2
"""``make test`` runs so many parts of the sample; each has cases of every frontend."""
EACH = 1
"""So many cells of each case are run here."""


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.slow] * (part >= DAILY)) for part in range(PARTS)]
)
def test_killed_and_run_again_nothing_is_bought_twice_or_lost(part: int) -> None:
    for cell in sample(cases()[part::PARTS], EACH):
        assert run(cell).problems == [], f'python -m tests.crash --only "{cell}"'


@pytest.mark.parametrize("subject", ["server 201", "second tariff"])
@pytest.mark.parametrize("frontend", ["dynamic", "native", "ansible"])
@pytest.mark.parametrize("point", WRITE_POINTS)
def test_an_order_killed_while_it_is_sent_is_one_server(frontend: str, point: str, subject: str) -> None:
    """The last order: of several tariffs the second, while the first is in stock again by the next run."""
    command = "play" if frontend == "ansible" else "up"
    case = Case(frontend, command, subject, "create")
    sent = reference(case).sent
    exchange = max(number for number, request in enumerate(sent) if request == "POST /v1/servers")
    result = run(Cell(case, exchange, point))  # type: ignore[arg-type]  # one of them
    assert (result.problems, result.stop) == ([], None)


@pytest.mark.parametrize("sender", ["the provider", "the worker"])
@pytest.mark.parametrize(("label", "points"), [("GET /me", READ_POINTS), ("POST /servers", WRITE_POINTS)])
def test_real_processes_are_killed_at_every_point(
    sender: Victim, label: str, points: tuple[Point, ...]
) -> None:
    """Each exchange meets every point and every victim; a few exchanges meet every pair of the two."""
    each = [list(chosen(Exchange(label, 0), number, sender)) for number in range(8)]
    for found in each:
        assert tuple(point for point, _ in found) == points
        assert {victim for _, victim in found} == {"everything", "the engine", sender}
    pairs = {(victim, point) for victim in ("everything", sender) for point in points}
    pairs |= {("the engine", point) for point in points if point in ENGINE_POINTS}
    assert pairs == {(victim, point) for found in each for point, victim in found}


def test_playbooks_are_killed_outside_pytest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: WarmPython
) -> None:
    monkeypatch.delenv("HOSTING_RUNTIME_DIR")
    with KillingServer() as server:
        frontend = AnsibleFrontend(server, tmp_path / "ansible", warm_python)
        server.shutdown()
    assert frontend.playbooks.environ["HOSTING_RUNTIME_DIR"] == str(frontend.runtime)


def test_every_resource_and_paid_action_has_cases() -> None:
    from pulumi_hosting.actions import ACTIONS
    from pulumi_hosting.resources import RESOURCES

    assert {subject.kind for subject in PULUMI.values()} == set(RESOURCES)
    charging = {kind for kind, action in ACTIONS.items() if action.charges}
    assert charging <= {subject.kind for subject in ANSIBLE.values()}
