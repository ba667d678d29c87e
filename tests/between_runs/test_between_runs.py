"""A sample of what the account does between two runs; ``python -m tests.between_runs`` runs more of it."""

import dataclasses

import pytest

from pulumi_hosting.actions import ACTIONS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from tests.between_runs.cases import EVENTS, PURCHASES, SUBJECTS, Cell, cells, few, sample
from tests.between_runs.cell import broken_promises, follow, run
from tests.between_runs.world import World

PARTS = 6
"""The rest of the sample is run in so many parts."""


def test_no_promise_is_broken_by_any_event_after_any_purchase() -> None:
    for cell in few(sample(cells())):
        assert run(cell).problems == [], f'python -m tests.between_runs --product --only "{cell}"'


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_promise_is_broken_whatever_the_account_does(part: int) -> None:
    every = sample(cells())
    for cell in [cell for cell in every if cell not in few(every)][part::PARTS]:
        assert run(cell).problems == [], f'python -m tests.between_runs --product --only "{cell}"'


def test_every_purchase_and_every_event_has_cells() -> None:
    every = cells()
    assert {cell.purchase for cell in every} == set(PURCHASES)
    assert {cell.event for cell in every} == set(EVENTS)
    bought = {kind for kind, resource in RESOURCES.items() if isinstance(resource, Priced)}
    assert bought <= {SUBJECTS["pulumi"][name].kind for name in PURCHASES if name in SUBJECTS["pulumi"]}
    paid = bought | {kind for kind, action in ACTIONS.items() if action.charges}
    assert paid <= {SUBJECTS["ansible"][name].kind for name in PURCHASES}


@pytest.fixture
def world() -> World:
    """A server is bought, and the state has it."""
    world = World(Cell("native", "server 201", "nothing", 0.0, "up"))
    world.prepare()
    assert broken_promises(world, world.run("up")) == []
    return world


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("it: server 20001 deleted, 5.00 EUR credited", "not true"),
        ("it: server 20001 (it) is gone from the account", "not true"),
        ("it: charged 6.00 EUR (VDS-1, 1 month)", "not true"),
        ("it: will charge 6.00 EUR (VDS-1, 1 month)", "charged 5.00 and said 11.00"),
        ("it: takes over server 20002 (it has the name)", "not true"),
        ("it: the charge was returned (invoice 40001)", "not true"),
        ("it: nothing was ordered", "not true"),
        ("there is no server named 'it' on this account", "not true"),
        ("it: server 20001 is here; it was a gift", "no pattern knows it"),
    ],
)
def test_a_false_or_an_unknown_sentence_is_noticed(line: str, problem: str, world: World) -> None:
    told = dataclasses.replace(world.runs[0], lines=[*world.runs[0].lines, line])
    found = broken_promises(world, told)
    assert found
    assert all(problem in text for text in found), found


def test_a_second_purchase_is_noticed(world: World) -> None:
    world.control("POST", "/servers", {"name": "it"})
    assert "after up: 2 of it" in broken_promises(world, world.run("up"))
    assert world.problems() == ["server 20002 (it, 5.00 EUR per month) is live and in no state"]


def test_a_charge_of_a_preview_is_noticed(world: World) -> None:
    bought = world.runs[0]
    found = broken_promises(world, dataclasses.replace(bought, command="preview"))
    assert {"preview was charged", f"preview wrote {bought.writes}"} <= set(found)


def test_advice_is_followed_word_for_word(world: World) -> None:
    assert (
        follow(world, "it: stop. Next: set adopt_id=7 to take it over, or order_attempt to 2") == "adopt_id=7"
    )
    assert world.overrides == {"adopt_id": "7"}
    assert follow(world, "it: stop. Next: look at the moon") is None
