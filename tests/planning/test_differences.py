"""What differs, field by field and trait by trait, and what is said where a difference has no effect."""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import TransportError
from pulumi_hosting.planning.apply import ensure
from pulumi_hosting.planning.check import Checked, check, declared
from pulumi_hosting.planning.diff import (
    Diff,
    FieldChange,
    diff,
    forbidden,
    is_same,
    refuse_forbidden,
)
from pulumi_hosting.planning.plan import Plan, PlanOptions, plan
from pulumi_hosting.provider.conversion import live_inputs
from pulumi_hosting.resources.powers import Predicted
from pulumi_hosting.session.errors import Unchangeable
from tests.planning.gadgets import (
    Gadget,
    GadgetInputs,
    GadgetState,
    Plain,
    RebuildableGadget,
    RegisteredGadget,
    RepeatableGadget,
    request,
)

OLDS: dict[str, Any] = {"name": "a", "size": 2, "id": "7"}
SAME = {"name": "a", "size": 2}


def changes(olds: dict[str, Any], news: dict[str, Any], unknown: tuple[str, ...] = ()) -> dict[str, Any]:
    """Field → before, after, whether it replaces."""
    found = diff(Gadget(), {**OLDS, **olds}, {**SAME, **news}, unknown)
    return {change.field: (change.before, change.after, change.replaces) for change in found.changes}


LAST = {"last": (None, "x", False)}
"""A field behind all others: it is compared whatever is in front of it."""


@pytest.mark.parametrize(
    ("olds", "news", "found"),
    [
        ({"notes": "by hand"}, {}, {}),  # not mentioned = not managed
        ({"notes": "old"}, {"notes": "new"}, {"notes": ("old", "new", False)}),
        ({}, {"size": 3}, {"size": (2, 3, True)}),
        ({"size": None}, {"size": 3}, {}),  # not observable, and never recorded
        ({"image": "a"}, {"image": "b"}, {"image": ("a", "b", False)}),
        ({}, {"image": "b"}, {}),
        ({}, {"zone": "b"}, {"zone": (None, "b", True)}),  # the state has no such field
        ({}, {"policy": "any"}, {}),
        ({"policy": "a"}, {"policy": "b"}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["a"]}, {"tags": (["a", "b"], ["a"], False)}),
        ({"tags": None}, {"tags": ["a"]}, {"tags": (None, ["a"], False)}),
        ({"tags": None}, {"tags": []}, {}),
        ({"notes": ""}, {"notes": None}, {}),
        ({"notes": None}, {"notes": ""}, {}),
        ({"notes": "a"}, {"notes": None}, {"notes": ("a", None, False)}),
        ({"notes": None}, {"notes": "a"}, {"notes": (None, "a", False)}),
        ({"address": "A"}, {"address": "a"}, {}),
        ({"address": "A"}, {"address": "b"}, {"address": ("A", "b", False)}),
        ({"address": None}, {"address": "b"}, {"address": (None, "b", False)}),
        ({"address": "A"}, {"address": None}, {"address": ("A", None, False)}),
        ({"poke": 1}, {"poke": 2}, {"poke": (1, 2, False)}),
        ({}, {"poke": 1}, {"poke": (None, 1, False)}),
        ({}, {"password": "new"}, {}),
        ({"password": "old"}, {"password": "new"}, {"password": ("(secret)", "(secret)", False)}),
        ({"password": "old"}, {"password": None}, {"password": ("(secret)", None, False)}),
        ({}, {"months": 3}, {}),
        ({"months": 1}, {"months": 3}, {}),
    ],
)
def test_a_field_differs_as_its_trait_says(
    olds: dict[str, Any], news: dict[str, Any], found: dict[str, Any]
) -> None:
    assert changes(olds, news) == found
    assert changes(olds, {**news, "last": "x"}) == {**found, **LAST}


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("notes", {"notes": (None, "(known after apply)", False)}),
        ("size", {"size": (2, "(known after apply)", True)}),
        ("password", {"password": (None, "(known after apply)", False)}),
        ("months", {}),
        ("policy", {}),
    ],
)
def test_what_is_only_known_later_may_differ(field: str, found: dict[str, Any]) -> None:
    assert changes({}, {}, (field,)) == found
    assert changes({}, {"last": "x"}, (field,)) == {**found, **LAST}


def test_a_secret_that_is_only_known_later_shows_none() -> None:
    assert changes({"password": "old"}, {}, ("password",)) == {
        "password": ("(secret)", "(known after apply)", False)
    }


def test_without_an_object_nothing_is_triggered() -> None:
    assert not diff(Gadget(), {}, {"poke": 1})
    assert diff(Gadget(), {}, {"poke": 1, "last": "x"}).fields == {"last"}


def test_what_matters_at_creation_says_so_where_it_was_recorded() -> None:
    assert diff(Gadget(), OLDS, {**SAME, "months": 3}).remarks == ()
    recorded = diff(Gadget(), {**OLDS, "months": 1}, {**SAME, "months": 3})
    assert recorded.remarks == ("months is create-only; change ignored",)
    assert not diff(Gadget(), {**OLDS, "months": 3}, {**SAME, "months": 3}).remarks


def test_only_what_reads_differently_is_asked_about() -> None:
    asked = list[Any]()

    def same(field: str, olds: Any, after: Any) -> bool:
        asked.append((field, olds[field], after))
        return field == "notes"

    olds = {**OLDS, "notes": "a", "colour": "red"}
    found = diff(Gadget(), olds, {**SAME, "notes": "b", "colour": "blue"}, same=same)
    assert asked == [("notes", "a", "b"), ("colour", "red", "blue")]
    assert found.fields == {"colour"}


def test_a_difference_without_changes_is_none() -> None:
    assert not Diff(remarks=("x",), refusals=("y",))
    found = Diff((FieldChange("a", 1, 2, True), FieldChange("b", 1, 2, False)))
    assert (bool(found), found.fields, found.replaces) == (True, frozenset({"a", "b"}), ("a",))


def test_values_of_an_input_are_compared_by_its_trait() -> None:
    assert is_same(Gadget(), "address", "A", "a")
    assert not is_same(Gadget(), "notes", "A", "a")


def test_the_managed_inputs_as_they_are_now() -> None:
    now = GadgetState(id="7", name="b", size=2, tags=[])
    last = {"name": "a", "notes": "mine", "zone": "z", "months": 3}
    managed = ["name", "notes", "zone", "tags", "id", "elsewhere"]
    assert live_inputs(Gadget(), now.values(), managed, last) == {
        "name": "b",
        "notes": "mine",
        "zone": "z",
        "tags": [],
    }


# --- what the user says a change does

KEY = {"key": "old"}


@pytest.mark.parametrize(
    ("policy", "replaces", "refusals"),
    [("replace", ("key",), ()), ("forbid", (), ("key",)), ("reinstall", (), ())],
)
def test_the_declaration_says_what_a_change_does(
    policy: str, replaces: tuple[str, ...], refusals: tuple[str, ...]
) -> None:
    news = {**SAME, "key": "new", "policy": policy, "last": "x"}
    found = diff(RebuildableGadget(), {**OLDS, **KEY}, news)
    assert found.changes == (
        FieldChange("key", "old", "new", policy == "replace"),
        FieldChange("last", None, "x", False),
    )
    assert (found.replaces, found.refusals, found.remarks) == (replaces, refusals, ())
    later = diff(RebuildableGadget(), {**OLDS, **KEY}, {**SAME, "policy": policy}, ("key",))
    assert ([*later.fields], later.replaces) == (["key"], replaces)


def test_what_is_kept_is_remarked_unless_all_is_installed() -> None:
    gadget, olds = RebuildableGadget(), {**OLDS, **KEY, "image": "a"}
    kept = diff(gadget, olds, {**SAME, "key": "new", "last": "x"})
    assert kept.fields == {"last"}
    assert kept.remarks == (
        "key has changed and is installed only when a rebuildable gadget is made: the change has no effect. "
        "Next: to install it, set rebuild to 'replace' (a new one, the old one is deleted) or "
        "'reinstall' (the same one, its disk is erased)",
    )
    assert diff(gadget, olds, {**SAME, "key": "new", "size": 3}).remarks == ()
    assert diff(gadget, olds, {**SAME, "key": "new", "image": "b"}).remarks == ()
    assert not diff(gadget, olds, {**SAME}, ("key",))


def test_a_change_that_the_declaration_forbids_is_named() -> None:
    gadget, news = RebuildableGadget(), {**SAME, "key": "new", "policy": "forbid"}
    reason = (
        "differs from what was declared before, and rebuild is 'forbid': declare what it was, or set rebuild "
        "to another value"
    )
    assert forbidden(gadget, {**OLDS, **KEY}, news) == {"key": reason}
    assert forbidden(gadget, {**OLDS, "key": "new"}, news) == {}
    assert forbidden(gadget, OLDS, news) == {}  # it was not declared
    assert forbidden(gadget, {**OLDS, **KEY}, {**news, "policy": "replace"}) == {}
    assert (
        forbidden(gadget, {**OLDS, **KEY, "notes": "old"}, {**SAME, "policy": "forbid", "notes": "new"}) == {}
    )
    asked = list[Any]()

    def same(field: str, olds: Any, after: Any) -> bool:
        asked.append((field, olds[field], after))
        return True

    assert forbidden(gadget, {**OLDS, **KEY}, news, same) == {}
    assert asked == [("key", "old", "new")]


def test_what_is_forbidden_stops_before_anything_is_changed() -> None:
    found = Diff(refusals=("key", "image"))
    for name, called in (("a", "a"), ("", "7")):
        with pytest.raises(Unchangeable) as caught:
            refuse_forbidden(Gadget(), GadgetState(id="7", name=name), found)
        assert str(caught.value) == (
            f"gadget {called}: key, image differs, and rebuild is 'forbid'; nothing was changed. Next: "
            "declare it as it is, or set rebuild to 'replace' or 'reinstall'"
        )
    refuse_forbidden(Gadget(), GadgetState(id="7"), Diff((FieldChange("key", 1, 2, True),)))


# --- plans of changes


def planned(gadget: Gadget, current: GadgetState | None = None, **more: Any) -> Plan:
    """The plan of one declaration; ``recorded`` and ``options`` as for ``plan``."""
    known = {name: more.pop(name) for name in ("recorded", "options") if name in more}
    unknown = more.pop("unknown", ())
    return plan(request(), gadget, check(gadget, {**SAME, **more}, unknown), current, **known)


THERE = GadgetState(id="7", name="a", size=2, key="old", mode="live")


def test_what_a_change_does_is_said_before_it_is_made() -> None:
    gadget = RebuildableGadget()
    reinstalled = planned(gadget, THERE, key="new", policy="reinstall")
    assert (reinstalled.action, reinstalled.remarks) == ("updated", ("its disk is erased",))
    assert reinstalled.predicted == {**THERE.shown(), "key": "new"}
    replaced = planned(gadget, THERE, key="new", policy="replace")
    assert (replaced.action, replaced.remarks, replaced.refusals) == ("replaced", ("7 is replaced",), {})
    assert replaced.predicted == {"name": "a", "size": 2, "key": "new"}
    kept = planned(gadget, THERE, key="new", notes="x")
    assert (kept.action, len(kept.remarks)) == ("updated", 1)
    refused = planned(gadget, THERE, key="new", policy="forbid")
    assert refused.refusals == {"key": "differs, and rebuild is 'forbid'"}
    assert planned(gadget, THERE, key="new").action == "unchanged"
    assert len(planned(gadget, THERE, key="new").remarks) == 1
    assert planned(gadget, THERE, key="old again").action == "unchanged"  # the account says it is the same
    assert (
        planned(gadget, THERE, key="new", policy="replace", options=PlanOptions(predicted=False)).predicted
        is None
    )


def test_what_was_recorded_is_compared_rather_than_what_the_state_shows() -> None:
    assert planned(Gadget(), THERE, recorded={**SAME, "notes": "n"}, notes="n").action == "unchanged"
    assert planned(Gadget(), THERE, notes="n").action == "updated"


def test_a_changed_declaration_without_its_object() -> None:
    gadget = RebuildableGadget()
    recorded = {**SAME, "key": "old"}
    forbidding = planned(gadget, recorded=recorded, key="new", policy="forbid")
    assert (forbidding.action, [*forbidding.refusals]) == ("updated", ["key"])
    assert planned(gadget, recorded=recorded, key="old x", policy="forbid").refusals == {}
    assert planned(gadget, recorded=recorded, key="new", policy="replace").action == "updated"
    assert planned(Gadget(), recorded={**SAME, "tags": ["a", "b"]}, tags=["b", "a"]).action == "unchanged"
    error = TransportError("no route", outcome_unknown=False)
    warn = PlanOptions(unreachable="warn", reach=lambda: error)
    assert planned(gadget, recorded=recorded, notes="x", options=warn) == Plan("updated", unchecked=error)
    assert planned(gadget, options=warn) == Plan("created", unchecked=error)
    assert planned(gadget, options=PlanOptions(reach=lambda: error)).action == "created"


def test_values_that_are_only_known_later_leave_the_rest_planned() -> None:
    found = planned(Gadget(), THERE, unknown=("notes",))
    assert (found.action, [*found.changes.fields]) == ("updated", ["notes"])
    assert found.predicted == THERE.shown()


class Predicting(Gadget, Predicted[GadgetState]):
    def adjust_prediction(self, predicted: dict[str, Any], state: GadgetState | None) -> dict[str, Any]:
        return {**predicted, "was": state.id if state else None}


def test_a_prediction_shows_no_secret_and_what_the_kind_adds() -> None:
    there = GadgetState(id="7", name="a", size=2)
    more: dict[str, Any] = {"notes": "x", "password": "hunter2", "policy": "p"}
    changed = planned(Predicting(), there, **more).predicted
    assert changed == {**there.shown(), "mode": "live", "notes": "x", "was": "7"}
    assert planned(Predicting(), **more).predicted == {**SAME, "notes": "x", "was": None}
    simulated = planned(Gadget(), GadgetState(id="97", name="a", size=2), notes="x").predicted
    assert simulated is not None
    assert simulated["mode"] == "test"


def test_what_cannot_be_changed_yet_is_planned_as_unchanged() -> None:
    gadget = RegisteredGadget()
    gadget.waits = "it is on its way"
    there = GadgetState(id="7", name="a", size=2, months=1)
    found = planned(gadget, there, notes="x", colour="red", months=3)
    assert (found.action, sorted(found.changes.fields)) == ("unchanged", ["colour", "notes"])
    assert found.remarks == ("months is create-only; change ignored",)
    assert found.warnings == (
        "registered gadget a: colour, notes cannot be set yet, since it is on its way. Next: run again later",
    )
    gadget.waits = None
    assert planned(gadget, there, notes="x", months=3).remarks == found.remarks
    assert planned(gadget, there, months=3).remarks == found.remarks


def test_second_objects_are_named_and_updated_away() -> None:
    gadget = RepeatableGadget(THERE)
    gadget.more = ("8", "9")
    found = planned(gadget, THERE)
    assert (found.action, found.doubles, bool(found.changes)) == ("updated", ("8", "9"), False)
    changed = planned(gadget, THERE, notes="x")
    assert (changed.action, changed.doubles) == ("updated", ("8", "9"))
    assert planned(gadget, THERE, size=3).doubles == ()  # they go with it
    step = request()
    assert ensure(step, gadget, GadgetInputs(name="a", size=2)).action == "updated"
    assert step.messages == [
        f"warning: repeatable gadget {id} is a second one of this resource: a request of an interrupted run "
        "was processed late. It is deleted with this update"
        for id in ("8", "9")
    ]
    assert planned(Gadget(), THERE).doubles == ()


def test_where_the_account_cannot_be_read_no_second_object_is_named() -> None:
    error = TransportError("no route", outcome_unknown=False)
    gadget = RepeatableGadget()
    gadget.more = error
    assert planned(gadget, THERE).action == "unchanged"
    gadget.more = ("8",)
    gadget.log.clear()
    assert planned(gadget, THERE, options=PlanOptions(reach=lambda: error)).doubles == ()
    assert gadget.log == []


# --- normal form


def test_what_is_wrong_is_kept_as_it_was_given() -> None:
    found = check(Gadget(), {"name": "a", "size": "big", "notes": 5}, ("colour", "sise"))
    assert (found.inputs, found.known, sorted(found.unknown)) == (None, None, ["colour", "sise"])
    assert found.values == {"name": "a", "size": "big", "notes": 5}
    assert found.failures == {
        "sise": "is not an input of this resource; did you mean size?",
        "size": "must be a whole number, and is a text",
        "notes": "must be a text, and is a number",
    }
    assert "big" not in repr(found)


def test_what_is_known_is_kept_beside_what_is_not() -> None:
    found = check(Gadget(), {"name": "a", "size": 2, "notes": "x"}, ("size",))
    assert (found.inputs, found.failures, [*found.unknown]) == (None, {}, ["size"])
    assert found.values == {"name": "a", "notes": "x"}
    whole = check(Gadget(), {**SAME})
    assert whole == Checked(GadgetInputs(name="a", size=2), {}, GadgetInputs(name="a", size=2))
    refused = check(Gadget(), {**SAME}, ("elsewhere",))
    assert refused.inputs == GadgetInputs(name="a", size=2)
    assert refused.failures == {"elsewhere": "is not an input of this resource"}


def test_an_object_that_exists_need_not_be_described_whole() -> None:
    found = declared(Plain(), {"notes": "x"})
    assert (found.inputs.notes, found.inputs.name, found.inputs.size) == ("x", None, None)
    assert (found.values, found.failures, found.unknown) == ({"notes": "x"}, {}, frozenset())
    assert found.known is found.inputs
    whole = declared(Plain(), {**SAME})
    assert type(whole.inputs) is GadgetInputs
    wrong = declared(Plain(), {"size": "big", "sise": 1})
    assert (wrong.inputs, wrong.known) == (None, None)
    assert wrong.failures == {
        "size": "must be a whole number, and is a text",
        "sise": "is not an input of this resource; did you mean size?",
    }
    assert wrong.values == {"size": "big", "sise": 1}


def test_a_reason_names_the_place_within_its_field() -> None:
    assert check(Gadget(), {**SAME, "tags": ["a", 5, 6]}).failures == {
        "tags": "[1] must be a text, and is a number"
    }
