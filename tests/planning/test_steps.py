"""The steps that an engine asks for one by one: what is sent, saved and recorded, and what a key of the other
mode may not do.
"""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.session.errors import ResourceError, WrongMode
from pulumi_hosting.session.request import Request
from tests.planning.gadgets import ME, Client, Gadget, GadgetInputs, GadgetState, Plain, request, state

A = GadgetInputs(name="a", size=2, notes="mine")


# --- create


def test_what_is_made_is_saved_before_it_is_waited_for() -> None:
    gadget, saved = Gadget(made_as="order-7"), list[Any]()
    step = request()
    found = apply.create(
        step, gadget, A, save=lambda made: saved.append((made.id, made.mode, len(gadget.log)))
    )
    assert gadget.log == ["create a 2", "settle order-7"]
    assert saved == [("order-7", "live", 1), ("order-7", "live", 1)]  # by the order, and when it is made
    assert (found.id, found.mode, found.notes) == ("7", "live", "mine")
    assert step.ownership.of(ME) == {"order-7", "7"}


def test_without_waiting_an_order_is_left_to_itself() -> None:
    gadget, saved = Gadget(made_as="order-7"), list[Any]()
    step = request()
    found = apply.create(step, gadget, A, save=saved.append, wait=False)
    assert gadget.log == ["create a 2"]
    assert (found.id, found.mode) == ("order-7", "live")
    assert saved[-1] == found
    assert step.ownership.of(ME) == {"order-7"}


def test_without_waiting_what_creation_cannot_carry_is_set() -> None:
    gadget = Gadget()
    assert apply.create(request(), gadget, A, wait=False).notes == "mine"
    assert gadget.log == ["create a 2", "settle 7"]


def test_what_a_test_key_makes_is_recorded_as_test() -> None:
    saved = list[Any]()
    assert apply.create(request(Client(is_test_key=True)), Gadget(), A, saved.append).mode == "test"
    assert [made.mode for made in saved] == ["test", "test"]


def test_what_needs_no_settling_is_made_as_it_is() -> None:
    step = request()
    assert apply.create(step, Plain(), A) == state()
    assert step.ownership.of(ME) == {"7"}


def test_a_key_of_another_mode_than_the_declared_one_makes_nothing() -> None:
    gadget = Gadget()
    with pytest.raises(WrongMode, match="the configuration says mode live, and this is a test key"):
        apply.create(request(Client(is_test_key=True), declared_mode="live"), gadget, A)
    assert gadget.log == []
    assert apply.create(request(declared_mode="live"), gadget, A).id == "7"


def test_nothing_is_adopted_that_is_replaced_or_declared_elsewhere() -> None:
    adopting, saved = GadgetInputs(name="a", size=2, adopt_id="7"), list[Any]()
    with pytest.raises(
        ResourceError, match=r"^adopt_id names gadget 7, the resource being replaced; nothing was changed"
    ):
        apply.create(request(owned=frozenset({"7"})), Gadget(), adopting, lambda made: None)
    step = request()
    step.ownership.add("ansible:/gadget/b", "7")
    with pytest.raises(ResourceError, match=r"^adopt_id: another declaration has gadget 7 already"):
        apply.create(step, Gadget(), adopting, saved.append)
    assert step.ownership.of(ME) == frozenset()
    step = request()
    step.ownership.add(ME, "7")
    assert apply.create(step, Gadget(), adopting).id == "7"
    step = request(owned=frozenset({"7"}))
    assert apply.create(step, Gadget(), A).id == "7"  # found again, not adopted


# --- wait and resume


def test_waiting_writes_nothing() -> None:
    gadget, step = Gadget(), request()
    assert apply.wait(step, gadget, state("order-7", "test")) == state("7", "test")
    assert gadget.log == ["wait order-7"]
    assert step.ownership.of(ME) == {"7"}
    assert apply.wait(request(), Plain(), state()) == state()


@pytest.mark.parametrize(("client", "mode"), [(Client(), "live"), (Client(is_test_key=True), "test")])
def test_resuming_goes_on_in_the_mode_it_began(client: Client, mode: str) -> None:
    gadget, step = Gadget(), request(client)
    for recorded in (mode, None):
        assert apply.resume(step, gadget, state("order-7", recorded), A) == state("7", mode, notes="mine")
    assert gadget.log == ["settle order-7"] * 2
    assert step.ownership.of(ME) == {"7"}


# --- what a key of the other mode may not do

STEPS: list[Callable[[Request, Gadget, GadgetState], Any]] = [
    lambda step, gadget, recorded: apply.resume(step, gadget, recorded, A),
    lambda step, gadget, recorded: apply.update(step, gadget, recorded, A, frozenset({"notes"})),
    lambda step, gadget, recorded: apply.delete(step, gadget, recorded),
]
each_step = pytest.mark.parametrize("do", STEPS, ids=["resume", "update", "delete"])


@each_step
def test_a_test_key_changes_nothing_real(do: Callable[..., Any]) -> None:
    gadget = Gadget(state())
    with pytest.raises(WrongMode) as caught:
        do(request(Client(is_test_key=True)), gadget, state())
    assert str(caught.value) == (
        "gadget a (id 7) was made with a live key, and a test key may look at it but never change it; "
        "nothing was sent. Next: use the live key for changes, the test key for previews"
    )
    assert gadget.log == []


@each_step
@pytest.mark.parametrize("simulated", [state("7", "test"), state("97", None)], ids=["recorded", "by id"])
def test_a_live_key_changes_nothing_simulated(do: Callable[..., Any], simulated: GadgetState) -> None:
    gadget = Gadget(simulated)
    with pytest.raises(WrongMode) as caught:
        do(request(), gadget, simulated)
    assert str(caught.value) == (
        f"gadget a (id {simulated.id}) was only simulated, with a test key, and a live key must not touch "
        "it; nothing was sent. Next: use the test key that made it, or pulumi state delete 'URN' "
        "(pulumi stack export names it)"
    )
    assert gadget.log == []


@each_step
def test_a_key_of_another_mode_than_the_declared_one_changes_nothing(do: Callable[..., Any]) -> None:
    gadget = Gadget(state())
    with pytest.raises(WrongMode) as caught:
        do(request(declared_mode="test"), gadget, state())
    assert str(caught.value) == (
        "the configuration says mode test, and this is a live key: it may look and preview, and change "
        "nothing. Next: use a test key"
    )
    assert gadget.log == []


def test_an_object_without_a_name_is_named_by_its_id() -> None:
    with pytest.raises(WrongMode, match=r"^gadget \(id 7\) was made with a live key"):
        apply.delete(request(Client(is_test_key=True)), Gadget(), state(name=""))


# --- read


def test_an_object_is_read_as_it_is_and_keeps_its_mode() -> None:
    gadget = Gadget(state("7", None, notes="now"), state("97", None))
    assert apply.read(request(), gadget, state()) == state(notes="now")
    assert apply.read(request(), gadget, state("7", None)) == state(notes="now")
    assert gadget.log == ["read 7 'a'", "read 7 'a'"]
    assert apply.read(request(declared_mode="test"), gadget, state()) == state(notes="now")  # it may look
    testing = request(Client(is_test_key=True))
    assert apply.read(testing, gadget, state("97", None)) == state("97", "test")
    assert apply.read(testing, gadget, state("7", "test")) == state("7", "test", notes="now")


def test_a_live_key_does_not_read_what_was_simulated() -> None:
    with pytest.raises(WrongMode, match="was only simulated"):
        apply.read(request(), Gadget(), state("7", "test"))


@pytest.mark.parametrize("sandbox", ["recorded", "refused"])
def test_what_was_simulated_and_cannot_be_read_back_stays_as_recorded(
    sandbox: Literal["recorded", "refused"],
) -> None:
    gadget, step = Gadget(sandbox=sandbox), request(Client(is_test_key=True))
    recorded = state("7", "test")
    assert apply.read(step, gadget, recorded) is recorded
    by_id = state("97", None)
    assert apply.read(step, gadget, by_id) is by_id
    assert (gadget.log, step.messages) == ([], [])


def test_what_a_test_key_may_not_read_stays_as_last_known() -> None:
    gadget, step = Gadget(state(notes="now"), sandbox="refused"), request(Client(is_test_key=True))
    last = state()
    assert apply.read(step, gadget, last) is last
    assert gadget.log == []
    assert step.messages == ["gadget 7 cannot be read with a test key: using the last known state"]
    assert apply.read(request(), gadget, last) == state(notes="now")
    listed = Gadget(state(notes="now"))
    assert apply.read(request(Client(is_test_key=True)), listed, last) == state(notes="now")


def test_absence_tells_a_test_key_nothing_of_what_is_not_listed() -> None:
    step = request(Client(is_test_key=True))
    recorded = state("7", None)
    assert apply.read(step, Gadget(sandbox="recorded"), recorded) is recorded
    assert apply.read(step, Gadget(sandbox="listed"), recorded) is None
    assert apply.read(step, Gadget(sandbox="recorded"), state("7", "live")) is None
    assert apply.read(request(), Gadget(sandbox="recorded"), recorded) is None
    assert apply.read(step, Gadget(sandbox="recorded"), GadgetState(id="7")) is None  # nothing but the id


# --- update and delete


def test_an_update_sends_the_fields_and_keeps_the_mode() -> None:
    gadget = Gadget(state())
    changed = apply.update(request(), gadget, state(), A, frozenset({"notes"}))
    assert changed == state(notes="mine")
    assert gadget.log == ["update 7: notes"]
    testing = request(Client(is_test_key=True))
    assert apply.update(testing, gadget, state("7", "test"), A, frozenset({"notes"})).mode == "test"
    assert apply.update(testing, gadget, state("7", None), A, frozenset({"notes"})).mode == "test"
    assert len(gadget.log) == 3


def test_what_was_simulated_and_cannot_be_read_back_changes_in_the_record() -> None:
    gadget, step = Gadget(sandbox="recorded"), request(Client(is_test_key=True))
    fields = frozenset({"notes", "policy"})
    assert apply.update(step, gadget, state("7", "test"), A, fields) == state("7", "test", notes="mine")
    assert gadget.log == []
    assert step.messages == ["gadget 7 was simulated, and so is its change"]
    by_id = apply.update(step, gadget, state("97", None), A, fields)
    assert (by_id.notes, gadget.log) == ("mine", [])


def test_a_deletion_is_sent() -> None:
    gadget = Gadget(state())
    apply.delete(request(), gadget, state())
    assert (gadget.log, gadget.there) == (["delete 7"], {})


def test_what_was_only_recorded_is_deleted_without_a_request() -> None:
    gadget, step = Gadget(sandbox="recorded"), request(Client(is_test_key=True))
    apply.delete(step, gadget, state("7", "test"))
    assert gadget.log == []
    assert step.messages == ["gadget 7 was simulated: there is nothing to remove"]
    apply.delete(step, gadget, state("97", None))
    assert gadget.log == []
    listed = Gadget(state("97", "test"))
    apply.delete(step, listed, state("97", "test"))
    assert listed.log == ["delete 97"]
