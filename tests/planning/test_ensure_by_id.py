"""Objects that are named by their id, objects that are not wanted, and objects of which little is known."""

from typing import ClassVar, Literal

import pytest

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import ApplyOptions, ensure, ensure_absent
from pulumi_hosting.session.errors import NoSuchObject, ResourceConflict, ResourceError
from pulumi_hosting.session.request import Request
from tests.planning.gadgets import (
    Client,
    Gadget,
    GadgetInputs,
    GadgetState,
    Plain,
    RegisteredGadget,
    facts,
    fields,
    named,
    request,
    state,
)

A = GadgetInputs(name="a", size=2, notes="mine")
DRY = ApplyOptions(dry_run=True)


class ByAddress(Gadget):
    """It is found by another field than its name."""

    natural_key: ClassVar = ("address",)

    def find(self, request: Request, inputs: GadgetInputs) -> GadgetState | None:
        return next((one for one in self.there.values() if one.address == inputs.address), None)


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


def test_the_field_that_names_another_object_is_told() -> None:
    gadget = ByAddress(state(address="x"), state("8", name="b", address="y"))
    with pytest.raises(ResourceConflict) as caught:
        ensure(request(), gadget, GadgetInputs(name="a", size=2, address="y"), id="7")
    assert str(caught.value) == (
        "gadget 7 cannot become 'y': gadget 8 already has that address; nothing was changed. Next: choose "
        "another address, or delete gadget 8 first"
    )


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
    assert step.messages == [
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


class AfterAnOldList(Gadget):
    """A search that may be old finds what is gone; a deletion then shows that it was."""

    def __init__(self, *there: GadgetState, listed: list[GadgetState]) -> None:
        super().__init__(*there)
        self.listed = listed

    def find(self, request: Request, inputs: GadgetInputs) -> GadgetState | None:
        assert request.fresh
        return self.listed.pop(0) if self.listed else super().find(request, inputs)

    def delete(self, request: Request, state: GadgetState) -> None:
        self.log.append(f"delete {state.id}")
        if self.there.pop(state.id, None) is None:
            request.gone.add(state.id)


def test_where_the_list_was_old_the_object_of_the_name_is_deleted() -> None:
    gadget = AfterAnOldList(state("8"), listed=[state("7")])
    done = ensure_absent(request(), gadget, A)
    assert facts(done) == ("deleted", True, state("8").shown(), None, None)
    assert gadget.log == ["delete 7", "delete 8"]


def test_where_the_list_stays_old_nothing_more_is_deleted() -> None:
    gadget = AfterAnOldList(listed=[state("7"), state("7")])
    assert ensure_absent(request(), gadget, A).action == "deleted"
    assert gadget.log == ["delete 7"]
    gone = AfterAnOldList(listed=[state("7")])
    assert ensure_absent(request(), gone, A).action == "deleted"
    assert gone.log == ["delete 7"]
