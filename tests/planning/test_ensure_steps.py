"""The whole way of a frontend that remembers nothing: find, plan, apply. What is shown, sent and refused."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning.apply import ApplyOptions, ensure, ensure_absent
from pulumi_hosting.resources.powers import Validated
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import (
    KeyLacksScope,
    ResourceError,
    Unchangeable,
    WrongMode,
)
from tests.planning.gadgets import (
    FIVE,
    Client,
    Gadget,
    GadgetInputs,
    Plain,
    RebuildableGadget,
    RegisteredGadget,
    facts,
    fields,
    named,
    request,
    state,
)

A = GadgetInputs(name="a", size=2, notes="mine")
DRY = ApplyOptions(dry_run=True)
PRICED = ApplyOptions(priced=True)


# --- something new


def test_what_is_not_there_is_made_waited_for_and_shown() -> None:
    gadget, saved = Gadget(made_as="order-7"), list[Any]()
    made = ensure(request(), gadget, A, options=ApplyOptions(save=saved.append))
    now = state(notes="mine")
    assert facts(made) == ("created", True, None, now.shown(), now)
    assert gadget.log == ["create a 2", "settle order-7"]
    assert [one.mode for one in saved] == ["live", "live"]
    assert (made.cost, made.takeover) == (None, None)


def test_without_waiting_an_order_is_shown_as_it_is() -> None:
    gadget = Gadget(made_as="order-7")
    made = ensure(request(), gadget, A, options=ApplyOptions(wait=False))
    assert facts(made)[3:] == (state("order-7").shown(), state("order-7"))
    assert gadget.log == ["create a 2"]


def test_a_dry_run_shows_what_would_be_made_and_sends_nothing() -> None:
    gadget, step = Gadget(), request()
    planned = ensure(step, gadget, A, options=DRY)
    assert facts(planned) == ("created", True, None, {"name": "a", "size": 2, "notes": "mine"}, None)
    assert (planned.cost, gadget.log, step.messages) == (None, [], [])


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_price_is_approved_before_anything_is_ordered(dry_run: bool) -> None:
    gadget, asked = Gadget(), list[Any]()

    def approve(cost: Cost | None) -> None:
        assert gadget.log == []
        asked.append(cost)

    outcome = ensure(
        request(), gadget, A, options=ApplyOptions(dry_run=dry_run, priced=True, approve=approve)
    )
    assert (asked, outcome.cost) == ([FIVE], FIVE)
    ensure(request(), Gadget(price=None), A, options=ApplyOptions(priced=True, approve=asked.append))
    assert asked == [FIVE, None]
    ensure(request(), Gadget(), A, options=ApplyOptions(approve=asked.append))
    ensure(request(), Plain(), A, options=ApplyOptions(priced=True, approve=asked.append))
    assert asked == [FIVE, None]


def test_what_is_not_approved_is_not_ordered() -> None:
    def refuse(cost: Cost | None) -> None:
        raise ResourceError("too much")

    gadget = Gadget()
    with pytest.raises(ResourceError, match="too much"):
        ensure(request(), gadget, A, options=ApplyOptions(priced=True, approve=refuse))
    assert gadget.log == []


@pytest.mark.parametrize(
    ("balance", "told"),
    [
        ("4.99", ["warning: 5.00 EUR for one gadget is more than the balance of 4.99: it would be refused"]),
        ("5.00", []),
        (None, []),
    ],
)
def test_a_dry_run_tells_that_the_balance_does_not_cover_the_price(
    balance: str | None, told: list[str]
) -> None:
    price = Cost(Decimal("5.00"), "EUR", "one gadget", None if balance is None else Decimal(balance))
    step = request()
    ensure(step, Gadget(price=price), A, options=ApplyOptions(dry_run=True, priced=True))
    assert step.messages == told
    step = request()
    ensure(step, Gadget(price=price), A, options=PRICED)  # the service refuses it
    assert step.messages == []


def test_what_is_taken_over_is_shown_and_approved_only_should_it_be_paid() -> None:
    taken = Takeover(state(notes="old"), "it has the tag", datetime(2026, 11, 1, tzinfo=UTC))
    asked = list[Any]()
    options = ApplyOptions(priced=True, approve=asked.append)
    outcome = ensure(request(), Gadget(taken=taken), A, options=ApplyOptions(True, True, True, asked.append))
    shown = state(notes="old").shown()
    after = {**shown, "name": "a", "size": 2, "notes": "mine"}
    assert (outcome.before, outcome.after, outcome.takeover, asked) == (shown, after, taken, [])
    outcome = ensure(request(), Gadget(taken=taken), A, options=options)
    assert (outcome.before, outcome.takeover, outcome.cost) == (shown, taken, None)
    assert asked == [FIVE]  # by the order, which found nothing to take over any more
    ensure(request(), Gadget(taken=taken), A, options=ApplyOptions(approve=asked.append))
    assert asked == [FIVE]


def test_what_is_taken_over_shows_its_mode() -> None:
    taken = Takeover(state("97", None), "it has the tag")
    for dry_run in (True, False):
        step = request(Client(is_test_key=True))
        outcome = ensure(step, Gadget(taken=taken), A, options=ApplyOptions(dry_run=dry_run))
        assert outcome.before is not None
        assert outcome.before["mode"] == "test"


def test_missing_scopes_refuse_a_run_and_warn_a_dry_run() -> None:
    lacks = "the API key lacks gadgets:write, needed to create a gadget"
    with pytest.raises(KeyLacksScope, match=lacks):
        ensure(request(Client(scopes=())), Gadget(), A)
    step = request(Client(scopes=()))
    assert ensure(step, Gadget(), A, options=DRY).action == "created"
    assert step.messages == [f"warning: {lacks}. Next: give it that scope, or use another key"]


def test_a_dry_run_warns_of_missing_scopes_of_changes_and_deletions() -> None:
    """The real run would be refused by the service."""
    free = Gadget(state(), replacement="free")
    for gadget, inputs, verb in (
        (Gadget(state()), GadgetInputs(name="a", size=2, notes="new"), "update"),
        (free, GadgetInputs(name="a", size=3), "create"),
        (Gadget(state()), None, "delete"),
    ):
        step = request(Client(scopes=()))
        if inputs is None:
            ensure_absent(step, gadget, A, options=DRY)
        else:
            ensure(step, gadget, inputs, options=DRY)
        (line,) = step.messages
        assert line.startswith(f"warning: the API key lacks gadgets:write, needed to {verb} a gadget. Next: ")
        assert gadget.log == []
    step = request(Client(scopes=()))
    ensure(step, Gadget(state(notes="mine")), A, options=DRY)
    assert step.messages == []


def test_what_a_new_object_needs_is_asked_for_only_when_one_is_made() -> None:
    gadget = Gadget()
    with pytest.raises(InvalidInput) as caught:
        ensure(request(), gadget, named(name="a"))
    assert caught.value.fields == {"size": "is required"}
    assert str(caught.value).startswith("gadget 'a' does not exist yet, and as a new one it is not valid: ")
    assert gadget.log == []
    assert ensure(request(), Gadget(state()), named(name="a")).action == "unchanged"


def test_inputs_of_another_model_are_made_whole() -> None:
    gadget = Gadget()
    assert ensure(request(), gadget, named(name="a", size=3)).action == "created"
    partial = named(name="a", notes="mine")
    with pytest.raises(InvalidInput):
        ensure(request(), gadget := Gadget(), partial)
    assert gadget.log == []


def test_what_the_account_refuses_is_named_with_the_object() -> None:
    class Sold(Gadget, Validated):
        def validate(self, request: Any, desired: Any, fields: Any) -> dict[str, str]:
            return {"size": "is sold out"}

    with pytest.raises(InvalidInput) as caught:
        ensure(request(), gadget := Sold(), A)
    assert str(caught.value) == "gadget 'a' is not valid: size: is sold out. Next: correct size"
    assert gadget.log == []


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_key_of_another_mode_than_the_declared_one_only_plans(dry_run: bool) -> None:
    gadget = Gadget()
    step = request(declared_mode="test")
    if dry_run:
        assert ensure(step, gadget, A, options=DRY).action == "created"
    else:
        with pytest.raises(WrongMode):
            ensure(step, gadget, A)
    assert gadget.log == []


# --- something that exists


def test_what_is_as_declared_is_left_alone() -> None:
    gadget = Gadget(state("7", None, notes="mine"))
    outcome = ensure(request(), gadget, A)
    now = state(notes="mine")
    assert facts(outcome) == ("unchanged", False, now.shown(), now.shown(), now)
    assert (gadget.log, gadget.fresh) == ([], [False])
    assert not outcome.diff


def test_what_differs_is_changed_in_place() -> None:
    gadget = Gadget(state(notes="old"))
    planned = ensure(request(), gadget, A, options=DRY)
    before = state(notes="old").shown()
    assert facts(planned) == ("updated", True, before, state(notes="mine").shown(), None)
    assert planned.diff.fields == {"notes"}
    assert gadget.log == []
    done = ensure(request(), gadget, A)
    assert facts(done) == ("updated", True, before, state(notes="mine").shown(), state(notes="mine"))
    assert done.diff.fields == {"notes"}
    assert gadget.log == ["update 7: notes"]


@pytest.mark.parametrize("sized", [True, False])
def test_what_costs_nothing_to_replace_is_deleted_and_made_again(sized: bool) -> None:
    """What is not declared is made as it was."""
    inputs = GadgetInputs(name="a", size=3) if sized else named(name="a", key="new")
    there = state(key="old", notes="old")
    gadget = Gadget(there, made_as="8", replacement="free")
    planned = ensure(request(), gadget, inputs, options=DRY)
    assert (planned.action, planned.before, planned.state) == ("replaced", there.shown(), None)
    assert planned.diff.replaces == (("size",) if sized else ("key",))
    assert planned.after == ({"name": "a", "size": 3} if sized else {"name": "a", "size": 2, "key": "new"})
    assert gadget.log == []
    done = ensure(request(), gadget, inputs)
    assert gadget.log == ["delete 7", f"create a {3 if sized else 2}", "settle 8"]
    assert done.state is not None
    assert (done.action, done.before, done.after) == ("replaced", there.shown(), done.state.shown())
    assert (done.state.id, done.diff.replaces) == ("8", ("size",) if sized else ("key",))


@pytest.mark.parametrize(("wait", "id"), [(False, "order-8"), (True, "8")])
def test_a_replacement_need_not_be_waited_for(wait: bool, id: str) -> None:
    gadget = Gadget(state(), made_as="order-8", replacement="free")
    inputs = GadgetInputs(name="a", size=3)
    done = ensure(request(), gadget, inputs, options=ApplyOptions(wait=wait))
    assert gadget.log[:2] == ["delete 7", "create a 3"]
    assert done.state is not None
    assert done.state.id == id


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        (
            GadgetInputs(name="a", size=3, key="new"),
            "size is 2, not 3; key is 'old', not 'new', and that cannot be changed in place; nothing was "
            "changed. Next: declare it as it is, or delete it first and order again",
        ),
        (
            GadgetInputs(name="a", size=2, key="new", notes="mine"),
            "key is 'old', not 'new', and that cannot be changed in place; nothing was changed. "
            "Next: declare it as it is, or have it reinstalled, which erases its disk (state: reinstalled, "
            "erase: a)",
        ),
    ],
)
def test_what_costs_is_never_replaced(dry_run: bool, inputs: GadgetInputs, what: str) -> None:
    gadget = Gadget(state(key="old"))
    with pytest.raises(Unchangeable) as caught:
        ensure(request(), gadget, inputs, options=ApplyOptions(dry_run=dry_run))
    assert str(caught.value) == f"gadget a (id 7): {what}"
    assert gadget.log == []


def test_what_cannot_be_changed_yet_is_a_warning() -> None:
    gadget = RegisteredGadget(state(notes="old"))
    gadget.waits = "it is on its way"
    step = request()
    outcome = ensure(step, gadget, A)
    assert facts(outcome)[:2] == ("unchanged", False)
    assert (outcome.before, outcome.after) == (state(notes="old").shown(),) * 2
    assert not outcome.diff
    assert step.messages == [
        "warning: registered gadget a: notes cannot be set yet, since it is on its way. Next: run again later"
    ]
    assert gadget.log == []


def test_what_the_declaration_forbids_changes_nothing() -> None:
    gadget = RebuildableGadget(state(key="old", notes="old"))
    inputs = GadgetInputs(name="a", size=2, key="new", policy="forbid", notes="new")
    with pytest.raises(Unchangeable, match=r"^rebuildable gadget a: key differs, and rebuild is 'forbid'"):
        ensure(request(), gadget, inputs)
    assert gadget.log == []


def test_a_difference_without_effect_is_remarked() -> None:
    gadget = RebuildableGadget(state(key="old"))
    outcome = ensure(request(), gadget, GadgetInputs(name="a", size=2, key="new"))
    assert outcome.action == "unchanged"
    assert [remark.partition(" is ")[0] for remark in outcome.diff.remarks] == ["key has changed and"]


# --- something on its way

ORDER = state("order-7", image="old", months=1)
CAME = state(image="old", months=1)


@pytest.mark.parametrize(
    ("inputs", "action"),
    [
        (A, "updated"),
        (GadgetInputs(name="a", size=3, months=3, image="new", zone="z", policy="x"), "unchanged"),
    ],
)
def test_what_is_on_its_way_is_waited_for_and_then_as_declared(inputs: Any, action: str) -> None:
    gadget = Gadget(ORDER)
    planned = ensure(request(), gadget, inputs, options=DRY)
    after = {**ORDER.shown(), "notes": "mine"} if action == "updated" else ORDER.shown()
    assert facts(planned) == (action, action == "updated", ORDER.shown(), after, ORDER)
    assert gadget.log == []
    if action == "updated":
        assert planned.diff.fields == {"notes"}
        now = CAME.model_copy(update={"notes": "mine"})
        done = ensure(request(), gadget, inputs)
        assert gadget.log == ["settle order-7"]
        assert facts(done) == (action, True, ORDER.shown(), now.shown(), now)
        assert done.diff.fields == {"notes"}


def test_what_came_as_declared_is_shown_as_it_came() -> None:
    done = ensure(request(), gadget := Gadget(ORDER), GadgetInputs(name="a", size=2))
    assert gadget.log == ["settle order-7"]
    assert facts(done) == ("unchanged", False, CAME.shown(), CAME.shown(), CAME)


def test_what_differs_when_it_came_is_changed() -> None:
    done = ensure(request(), gadget := Gadget(ORDER), GadgetInputs(name="a", size=2, notes="n", colour="red"))
    assert gadget.log == ["settle order-7", "update 7: colour"]
    assert (done.action, done.before, fields(done)) == ("updated", ORDER.shown(), {"colour"})


@pytest.mark.parametrize("dry_run", [False, True])
def test_without_waiting_what_is_on_its_way_is_left_alone(dry_run: bool) -> None:
    gadget = Gadget(ORDER)
    outcome = ensure(request(), gadget, A, options=ApplyOptions(dry_run=dry_run, wait=False))
    assert facts(outcome) == ("unchanged", False, ORDER.shown(), ORDER.shown(), ORDER)
    assert gadget.log == []
    assert not outcome.diff
