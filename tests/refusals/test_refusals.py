"""Every refusal of ours is provoked in each frontend where it can happen, and its line helps who reads it."""

import re

import httpx
import pytest

from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.session.clock import RunClock
from tests.refusals import of_actions, of_purchases, scenarios
from tests.refusals.excused import ELSEWHERE, NOWHERE
from tests.refusals.sites import Provoked, noticed, sites
from tests.refusals.worlds import WORLDS, World
from tests.support.advice import problems
from tests.support.named_tests import is_there

PLAYS = (scenarios, of_purchases, of_actions)  # each registers its scenarios
TITLES = r"server|domain|SSH key|webhook subscription|PTR record|invoice|API key|address|order|delivery"
ACTIONS = r"(?:restart|renewal|reinstallation|top-up|redelivery|revocation|payment|reset|test) of "
SUBJECT = re.compile(
    rf"(?:an? |the |there is no )?(?:{ACTIONS}.*|(?:{TITLES})s?\b)|"
    r"(?:parameters are mutually|one of the following|value of \w+ must be)"  # Ansible's own
)
"""What a line begins with; Pulumi's engine prints the resource before the line."""


@pytest.fixture(scope="module", params=WORLDS)
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[str], Provoked]:
    """A frontend, the lines of all its scenarios, and what was provoked."""
    frontend, lines = request.param, list[str]()
    with noticed(sites()) as provoked:
        for play in (play for name, play in scenarios.SCENARIOS if name == frontend):
            folder = tmp_path_factory.mktemp(play.__name__)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HOSTING_RUNTIME_DIR", str(folder / "run"))
                world = WORLDS[frontend]()
                world.folder = folder
                _attach(world, patch)
                play(world)
            lines += [f"{play.__name__}: {line}" for line in world.lines]
            for line in world.lines:
                provoked.read(line)
    return frontend, lines, provoked


def _attach(world: World, patch: pytest.MonkeyPatch) -> None:
    """Requests pass the world, and waiting moves its account's clock."""
    arrive = Transport.handle_request

    def handle(transport: Transport, request: httpx.Request) -> httpx.Response:
        return world.handle(lambda sent: arrive(transport, sent), request)

    patch.setattr(Transport, "handle_request", handle)
    patch.setattr(RunClock, "sleep", lambda _, seconds: world.account.advance(seconds))
    patch.setattr(RunClock, "monotonic", lambda _: world.account.clock.now())


def test_every_refusal_is_provoked(played: tuple[str, list[str], Provoked]) -> None:
    frontend, _, provoked = played
    excused = {*NOWHERE, *ELSEWHERE[frontend]}
    missing = {site.name for site in sites()} - provoked.names
    assert sorted(name for name in missing if not any(_is_of(name, one) for one in excused)) == []
    # an excuse that no site needs
    assert sorted(one for one in excused if not any(_is_of(name, one) for name in missing)) == []


def _is_of(site: str, excused: str) -> bool:
    """Whether the excuse is of that site, or of all whose names begin so."""
    return (
        site == excused
        or site.startswith(f"{excused} ")
        or (excused[-1] in "/ ." and site.startswith(excused))
    )


def test_every_line_helps_its_reader(played: tuple[str, list[str], Provoked]) -> None:
    frontend, lines, _ = played
    assert len(lines) > 30
    wrong = []
    for line in lines:
        text = line.partition(": ")[2]
        found = problems(text, frontend)
        if frontend != "pulumi" and not SUBJECT.match(text):
            found.append("does not begin with what it is about")
        wrong += [f"{line}: {why}" for why in found]
    assert wrong == []


def test_a_test_that_is_named_in_place_of_a_scenario_is_there() -> None:
    assert [name for name in NOWHERE.values() if "::" in name and not is_there(name)] == []
