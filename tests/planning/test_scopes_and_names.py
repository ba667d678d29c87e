"""What a key may do, what a plan asks only where it is known, and objects without a name."""

from typing import Any, ClassVar

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import ensure, shown
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import Diff, refuse_forbidden
from pulumi_hosting.planning.modes_and_scopes import missing_scopes, with_id
from pulumi_hosting.planning.plan import Plan, PlanOptions, plan
from pulumi_hosting.resources.base import Inputs, State
from pulumi_hosting.resources.powers import Validated
from pulumi_hosting.resources.ssh_key import SSH_KEY
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.errors import Unchangeable
from pulumi_hosting.session.request import Request
from tests.planning.gadgets import FIVE, ME, Client, Gadget, GadgetInputs, GadgetState, Plain, request, state

SAME = {"name": "a", "size": 2}


class Scoped(Gadget, Validated):
    """Its scopes differ; ``wrong`` is what the account finds wrong."""

    scopes: ClassVar = {"create": ("a", "b"), "update": ("b",), "delete": ("c",), "read": ()}
    wrong: ClassVar[dict[str, str]] = {}

    def validate(self, request: Request, desired: Any, fields: frozenset[str]) -> dict[str, str]:
        assert request.identity == ME
        assert desired["size"] == 2
        return dict(self.wrong)


class Wrong(Scoped):
    wrong: ClassVar[dict[str, str]] = {"size": "is sold out"}


def lacks(verb: str, *scopes: str, sandbox: Any = "listed", is_test_key: bool = False) -> str | None:
    client = Client(scopes=scopes, is_test_key=is_test_key)
    return missing_scopes(request(client), Scoped(sandbox=sandbox), verb)


def test_the_scopes_that_a_key_lacks_are_named() -> None:
    assert lacks("create", "c") == (
        "the API key lacks a, b, needed to create a gadget. Next: give it these scopes, or use another key"
    )
    assert "lacks b, needed to create" in str(lacks("create", "a"))
    assert "lacks b, needed to update" in str(lacks("update", "a"))
    assert "lacks c, needed to delete" in str(lacks("delete", "a", "b"))
    assert lacks("create", "a", "b", "x") is None
    keyless = Client(scopes=("servers:read",))
    assert "needed to create an SSH key. " in str(missing_scopes(request(keyless), SSH_KEY, "create"))
    assert lacks("read") is None


def test_what_a_test_key_may_not_do_anyway_needs_no_scope() -> None:
    assert lacks("create", sandbox="refused", is_test_key=True) is None
    assert lacks("create", sandbox="refused") is not None
    assert lacks("create", sandbox="listed", is_test_key=True) is not None


def planned(gadget: Gadget, *scopes: str, unknown: tuple[str, ...] = (), **more: Any) -> Plan:
    recorded = more.pop("recorded", None)
    step, checked = request(Client(scopes=scopes)), check(gadget, {**SAME, **more.pop("inputs", {})}, unknown)
    return plan(step, gadget, checked, recorded=recorded, options=PlanOptions(scopes="warn", **more))


def test_a_warning_stands_beside_whatever_is_planned() -> None:
    made = planned(Scoped())
    assert [line.partition(".")[0] for line in made.warnings] == [
        "the API key lacks a, b, needed to create a gadget"
    ]
    assert (made.action, made.changes.fields, made.cost) == ("created", frozenset(), FIVE)
    changed = planned(Scoped(), recorded=SAME, inputs={"notes": "x"})
    assert changed == Plan("updated", warnings=changed.warnings)
    assert "needed to update" in changed.warnings[0]
    wrong = planned(Wrong())
    assert wrong == Plan("created", refusals=Wrong.wrong, warnings=made.warnings)
    assert planned(Wrong(), "b", recorded=SAME, inputs={"notes": "x"}) == Plan(
        "updated", refusals=Wrong.wrong
    )


def test_without_its_name_nothing_is_known_to_be_taken_over() -> None:
    taken = Takeover(state(), "it has the tag")
    assert planned(Scoped(taken=taken), "a", "b").takeover is taken
    unnamed = planned(Scoped(taken=taken), "a", "b", unknown=("name",))
    assert (unnamed.takeover, unnamed.cost) == (None, FIVE)


def test_what_is_not_asked_for_is_not_predicted() -> None:
    assert planned(Scoped(), predicted=False).predicted is None


# --- objects without a name


class LabelInputs(Inputs):
    label: str


class LabelState(State):
    label: str = ""


class Label(Plain):
    Inputs = LabelInputs
    State = LabelState

    def create(self, request: Request, inputs: Any) -> Any:
        return LabelState(id="7", label=inputs.label)


def test_an_object_without_a_name_is_called_by_its_id() -> None:
    assert with_id(Label(), LabelState(id="7")) == "plain thing (id 7)"
    assert with_id(Plain(), state()) == "plain thing a (id 7)"
    with pytest.raises(Unchangeable, match=r"^plain thing 7: label differs"):
        refuse_forbidden(Label(), LabelState(id="7"), Diff(refusals=("label",)))


def test_what_cannot_be_adopted_is_made() -> None:
    step = request(owned=frozenset({"7"}))
    assert apply.create(step, Label(), LabelInputs(label="x")) == LabelState(id="7", label="x", mode="live")


def test_what_was_simulated_shows_it() -> None:
    simulated = GadgetState(id="97", name="a", size=2)
    assert shown(Gadget(), simulated)["mode"] == "test"
    found = ensure(request(Client(is_test_key=True)), Gadget(simulated), GadgetInputs(name="a", size=2))
    assert found.state is not None
    assert (found.action, found.state.mode) == ("unchanged", "test")
