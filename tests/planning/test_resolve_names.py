"""Inputs that are given by a name: resolved once, and then as they were recorded."""

from typing import Annotated, Any, ClassVar

import pytest

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning.apply import ensure
from pulumi_hosting.planning.check import declared
from pulumi_hosting.planning.resolve_names import resolved
from pulumi_hosting.provider.conversion import live_inputs
from pulumi_hosting.resources.base import Trait
from pulumi_hosting.resources.powers import Named
from pulumi_hosting.session.request import Request
from tests.planning.gadgets import ME, Gadget, GadgetInputs, GadgetState, request


class NamedInputs(GadgetInputs):
    size_name: Annotated[str | None, Trait(names="size")] = None


class NamedState(GadgetState):
    size_name: str | None = None


class NamedGadget(Gadget, Named):
    Inputs = NamedInputs
    State = NamedState
    sizes: ClassVar = {"small": 2, "big": 3}

    def resolve(self, request: Request, field: str, name: str) -> Any:
        assert (request.identity, field) == (ME, "size")
        self.log.append(f"resolve {name}")
        if name not in self.sizes:
            raise ValueError("no such size")
        return self.sizes[name]


def named(**more: Any) -> Any:
    return declared(NamedGadget(), {"name": "a", **more}).inputs


THERE = NamedState(id="7", name="a", size=3, size_name="big", mode="live")


def test_a_new_object_is_made_of_what_the_name_stands_for() -> None:
    gadget = NamedGadget()
    assert ensure(request(), gadget, named(size_name="big")).action == "created"
    assert gadget.log == ["resolve big", "create a 3", "settle 7"]


def test_without_a_name_nothing_is_resolved() -> None:
    gadget = NamedGadget()
    ensure(request(), gadget, named(size=3))
    assert gadget.log == ["create a 3", "settle 7"]


def test_a_name_that_stands_for_nothing_makes_nothing() -> None:
    gadget = NamedGadget()
    with pytest.raises(InvalidInput) as caught:
        ensure(request(), gadget, named(size_name="huge"))
    assert str(caught.value) == "gadget 'a' is not valid: size_name: no such size. Next: correct size_name"
    assert gadget.log == ["resolve huge"]


def test_an_object_keeps_what_its_name_stood_for() -> None:
    gadget = NamedGadget(THERE.model_copy(update={"size": 9}))
    assert ensure(request(), gadget, named(size_name="big")).action == "unchanged"
    assert gadget.log == []


def test_a_name_that_is_gone_is_no_difference_of_an_object() -> None:
    gadget, step = NamedGadget(THERE), request()
    ensure(step, gadget, named(size_name="huge"))
    assert step.messages[0] == "warning: gadget 'a': size_name was not compared: no such size"
    assert not [line for line in gadget.log if line.startswith(("create", "delete"))]


def test_names_and_values_that_contradict_are_refused() -> None:
    found = resolved(request, NamedGadget(), {"size_name": "big", "size": 2}, {})
    assert found == ({}, {"size_name": "'big' is 3, and size is 2: give one of the two"})
    assert resolved(request, NamedGadget(), {"size_name": "big", "size": 3}, {}) == ({"size": 3}, {})
    assert resolved(request, Gadget(), {"size_name": "big"}, {}) == ({}, {})


def test_what_a_name_stood_for_stays_as_it_was_declared() -> None:
    managed, last = ["name", "size", "size_name"], {"name": "b", "size": 2, "size_name": "small"}
    assert live_inputs(NamedGadget(), THERE.values(), managed, last) == {
        "name": "a",
        "size": 2,
        "size_name": "small",
    }
