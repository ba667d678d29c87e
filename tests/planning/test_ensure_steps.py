"""The whole way of a frontend that remembers nothing: find, plan, apply. What is shown, sent and refused."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import ApplyOptions, Outcome, ensure, ensure_absent
from pulumi_hosting.planning.check import declared
from pulumi_hosting.resources.base import Takeover
from pulumi_hosting.resources.powers import Validated
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import (
    KeyLacksScope,
    NoSuchObject,
    ResourceConflict,
    ResourceError,
    Unchangeable,
    WrongMode,
)
from tests.planning.gadgets import (
    FIVE,
    Client,
    Gadget,
    GadgetInputs,
    GadgetState,
    Plain,
    RegisteredGadget,
    messages,
    request,
)

A = GadgetInputs(name="a", size=2, notes="mine")
DRY = ApplyOptions(dry_run=True)
PRICED = ApplyOptions(priced=True)


def state(id: str = "7", mode: str | None = "live", **more: Any) -> GadgetState:
    return GadgetState(id=id, mode=mode, **{"name": "a", "size": 2, **more})


def named(**more: Any) -> Any:
    """Inputs that need not describe the object whole."""
    return declared(Gadget(), more).inputs


def fields(outcome: Outcome) -> set[str]:
    return set(outcome.diff.fields)


def facts(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.action, outcome.changed, outcome.before, outcome.after, outcome.state


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
    assert (planned.cost, gadget.log, messages(step)) == (None, [], [])


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
    assert messages(step) == told
    step = request()
    ensure(step, Gadget(price=price), A, options=PRICED)  # the service refuses it
    assert messages(step) == []


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


def test_missing_scopes_refuse_a_run_and_warn_a_dry_run() -> None:
    lacks = "the API key lacks gadgets:write, needed to create a gadget"
    with pytest.raises(KeyLacksScope, match=lacks):
        ensure(request(Client(scopes=())), Gadget(), A)
    step = request(Client(scopes=()))
    assert ensure(step, Gadget(), A, options=DRY).action == "created"
    assert messages(step) == [f"warning: {lacks}. Next: give it that scope, or use another key"]


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
    assert planned.after == ({"name": "a", "size": 3} if sized else {"name": "a", "size": 2, "key": "new"})
    assert gadget.log == []
    done = ensure(request(), gadget, inputs)
    assert gadget.log == ["delete 7", f"create a {3 if sized else 2}", "settle 8"]
    assert done.state is not None
    assert (done.action, done.before, done.after) == ("replaced", there.shown(), done.state.shown())
    assert (done.state.id, done.diff.replaces) == ("8", ("size",) if sized else ("key",))


def test_a_replacement_need_not_be_waited_for() -> None:
    gadget = Gadget(state(), made_as="order-8", replacement="free")
    inputs = GadgetInputs(name="a", size=3)
    done = ensure(request(), gadget, inputs, options=ApplyOptions(wait=False))
    assert gadget.log == ["delete 7", "create a 3"]
    assert done.state is not None
    assert done.state.id == "order-8"


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        (
            GadgetInputs(name="a", size=3, key="new"),
            "size is 2, not 3; key is 'old', not 'new', and that cannot be changed in place; nothing was "
            "changed. Next: declare what it is, or delete it first and order anew",
        ),
        (
            GadgetInputs(name="a", size=2, key="new", notes="mine"),
            "key is 'old', not 'new', and that cannot be changed in place; nothing was changed. Next: "
            "declare what it is, or have it reinstalled (state: reinstalled), which erases its disk",
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
    assert messages(step) == [
        "warning: registered gadget a: notes cannot be set yet, since it is on its way. Next: run again later"
    ]
    assert gadget.log == []


# --- something on its way

ORDER = state("order-7")


@pytest.mark.parametrize(
    ("inputs", "action"),
    [(A, "updated"), (GadgetInputs(name="a", size=2, months=3, key="k", policy="x"), "unchanged")],
)
def test_what_is_on_its_way_is_waited_for_and_then_as_declared(inputs: Any, action: str) -> None:
    gadget = Gadget(ORDER)
    planned = ensure(request(), gadget, inputs, options=DRY)
    after = {**ORDER.shown(), "notes": "mine"} if action == "updated" else ORDER.shown()
    assert facts(planned) == (action, action == "updated", ORDER.shown(), after, ORDER)
    assert gadget.log == []
    if action == "updated":
        assert planned.diff.fields == {"notes"}
        done = ensure(request(), gadget, inputs)
        assert gadget.log == ["settle order-7"]
        assert facts(done) == (action, True, ORDER.shown(), state(notes="mine").shown(), state(notes="mine"))
        assert done.diff.fields == {"notes"}


def test_what_came_as_declared_is_shown_as_it_came() -> None:
    done = ensure(request(), gadget := Gadget(ORDER), GadgetInputs(name="a", size=2))
    assert gadget.log == ["settle order-7"]
    assert facts(done) == ("unchanged", False, state().shown(), state().shown(), state())


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


# --- by its id


def test_an_object_is_found_by_its_id_and_renamed() -> None:
    gadget = Gadget(state(name="old"))
    done = ensure(request(), gadget, GadgetInputs(name="a", size=2), id="7")
    assert (done.action, fields(done)) == ("updated", {"name"})
    assert gadget.log == ["read 7 'a'", "update 7: name"]  # compared as declared


def test_an_id_that_names_nothing_is_refused() -> None:
    for gadget in (Gadget(), Gadget(state("8")), Gadget(replacement="free")):
        with pytest.raises(NoSuchObject) as caught:
            ensure(request(), gadget, A, id="7")
        assert str(caught.value) == (
            "there is no gadget with id 7 on this account. Next: correct the id, or leave it out to create "
            "one"
        )
    with pytest.raises(NoSuchObject):
        ensure(request(), Gadget(state("8"), replacement="free"), named(size=2), id="7")


def test_a_replacement_has_another_id_and_is_found_by_its_name() -> None:
    gadget = Gadget(state("8"), replacement="free")
    assert ensure(request(), gadget, GadgetInputs(name="a", size=2), id="7").action == "unchanged"


@pytest.mark.parametrize("dry_run", [False, True])
def test_no_object_takes_the_name_of_another(dry_run: bool) -> None:
    gadget = Gadget(state(name="old"), state("8"))
    with pytest.raises(ResourceConflict) as caught:
        ensure(
            request(), gadget, GadgetInputs(name="a", size=2), id="7", options=ApplyOptions(dry_run=dry_run)
        )
    assert caught.value.id == "8"
    assert str(caught.value) == (
        "gadget 7 cannot become 'a': gadget 8 already has that name; nothing was changed. Next: choose "
        "another name, or delete gadget 8 first"
    )
    assert gadget.log == ["read 7 'a'"]


def test_another_object_of_the_name_is_no_obstacle_to_other_changes() -> None:
    gadget = Gadget(state("8"), state())
    assert ensure(request(), gadget, A, id="7").action == "updated"
    assert gadget.fresh == [False]  # only read, not searched for


# --- not having it


@pytest.mark.parametrize("id", [None, "7"])
def test_what_is_not_wanted_is_deleted(id: str | None) -> None:
    gadget, client = Gadget(state()), Client()
    planned = ensure_absent(request(client), gadget, A, id=id, options=DRY)
    assert facts(planned) == ("deleted", True, state().shown(), None, None)
    assert "delete 7" not in gadget.log
    done = ensure_absent(request(client), gadget, A, id=id)
    assert facts(done) == ("deleted", True, state().shown(), None, None)
    assert gadget.log[-1] == "delete 7"
    assert gadget.fresh == [True, True]  # never concluded from what was seen earlier


@pytest.mark.parametrize("replacement", ["ordered", "free"])
def test_what_is_gone_already_needs_nothing(replacement: Literal["ordered", "free"]) -> None:
    for gadget, id in (
        (Gadget(replacement=replacement), None),
        (Gadget(state("8"), replacement=replacement), "7"),
    ):
        gone = ensure_absent(request(), gadget, A, id=id)
        assert facts(gone) == ("unchanged", False, None, None, None)
        assert "delete 8" not in gadget.log


def test_an_id_of_an_object_of_another_name_is_refused() -> None:
    gadget = Gadget(state(name="b"))
    with pytest.raises(ResourceError) as caught:
        ensure_absent(request(), gadget, A, id="7")
    assert str(caught.value) == (
        "the gadget with id 7 has name 'b', not 'a'; nothing was removed. Next: correct the id, or leave "
        "name out"
    )
    assert "delete 7" not in gadget.log
    ensure_absent(request(), gadget, named(size=2), id="7")
    assert gadget.log[-1] == "delete 7"


def test_what_a_registry_holds_stays_and_is_said_to() -> None:
    gadget, step = RegisteredGadget(state()), request()
    assert facts(ensure_absent(step, gadget, A)) == ("unchanged", False, None, None, None)
    assert messages(step) == [
        "warning: registered gadget a stays on the account: it cannot be deleted via the API; auto-renew is "
        "off"
    ]
    assert gadget.log == []
    gadget.released = False
    assert ensure_absent(request(), gadget, A).action == "deleted"
    assert gadget.log == ["delete 7"]


def test_without_a_natural_key_only_an_id_names_an_object() -> None:
    plain = Plain(state())
    assert ensure_absent(request(), plain, A).action == "unchanged"
    assert ensure_absent(request(), plain, GadgetInputs(name="b", size=2), id="7").action == "deleted"
    assert plain.log == ["delete"]


# --- what is only known later


def test_a_new_object_is_predicted_from_what_is_known() -> None:
    found = apply.predict_create(Gadget(), {"name": "a"}, {"size", "password"})
    assert facts(found) == ("created", True, None, {"name": "a"}, None)
    with pytest.raises(InvalidInput) as caught:
        apply.predict_create(Gadget(), {"size": 2}, ())
    assert str(caught.value) == "gadget is not valid: name: is required. Next: correct name"
