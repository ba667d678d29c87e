"""One plan for both frontends: what is asked, in which order, and what the options change. No account is
needed.
"""

from collections.abc import Mapping
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, cast

import pytest

from pulumi_hosting.client.exceptions import ApiError, HostingError, NotFound, TransportError
from pulumi_hosting.client.key_owner import KeyOwner
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.plan import Plan, PlanOptions, plan
from pulumi_hosting.resources.base import ADOPTS, PRICES, TRANSFERS, Inputs, Resource, State
from pulumi_hosting.resources.powers import Adoptable, Priced, Validated
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import KeyLacksScope
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

FIVE = Cost(Decimal("5.00"), "EUR", "one thing")


class ThingInputs(Inputs):
    name: str
    tariff_id: Annotated[int, PRICES] = 1
    server_id: Annotated[str | None, PRICES] = None
    promo_code: Annotated[str | None, PRICES] = None
    notes: str | None = None
    existing: Annotated[str | None, ADOPTS] = None
    transfer_code: Annotated[str | None, TRANSFERS] = None


class ThingState(State):
    name: str = ""


class Client:
    """The only question the planner itself asks: which scopes the key has."""

    is_test_key = False
    observer: Any = None

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes
        self.key_owner = KeyOwner(self.me)

    def me(self) -> Any:
        return SimpleNamespace(scopes=self.scopes)


class Thing(Resource[ThingInputs, ThingState], Validated, Priced, Adoptable[ThingInputs]):
    kind: ClassVar[str] = "thing"
    title: ClassVar[str] = "thing"
    Inputs = ThingInputs
    State = ThingState
    scopes: ClassVar = dict.fromkeys(("read", "create", "update", "delete"), ("things:write",))

    def __init__(
        self,
        *,
        failures: dict[str, str] | None = None,
        taken: Takeover | None = None,
        error: HostingError | None = None,
    ) -> None:
        self.failures, self.taken, self.error = failures or {}, taken, error
        self.asked: list[str] = []

    def validate(
        self, context: Request, desired: Mapping[str, Any], fields: frozenset[str]
    ) -> dict[str, str]:
        self.asked.append(f"validate {', '.join(sorted(fields))}")
        if self.error is not None:
            raise self.error
        return self.failures

    def takeover(self, context: Request, inputs: ThingInputs) -> Takeover | None:
        self.asked.append("takeover")
        return self.taken

    def cost(self, context: Request, desired: Mapping[str, Any]) -> Cost | None:
        self.asked.append("cost")
        return FIVE

    def read(self, context: Request, id: str, last: ThingState | None = None) -> ThingState | None:
        raise AssertionError("a plan reads no object")

    def create(self, context: Request, inputs: ThingInputs) -> ThingState:
        raise AssertionError("a plan makes nothing")

    def update(
        self, context: Request, state: ThingState, inputs: ThingInputs, fields: frozenset[str]
    ) -> ThingState:
        raise AssertionError("a plan changes nothing")

    def delete(self, context: Request, state: ThingState) -> None:
        raise AssertionError("a plan deletes nothing")


def planned(
    thing: Thing,
    *,
    desired: Mapping[str, Any] | None = None,
    unknown: tuple[str, ...] = (),
    current: ThingState | None = None,
    recorded: Mapping[str, Any] | None = None,
    scopes: tuple[str, ...] = ("things:write",),
    options: PlanOptions | None = None,
    **more: Any,
) -> Plan:
    request = Request(Session(cast(Any, Client(*scopes))), "pulumi:t/dev/thing/a")
    checked = check(thing, {"name": "a"} if desired is None else desired, unknown)
    return plan(request, thing, checked, current, recorded=recorded, options=options or PlanOptions(**more))


def test_a_new_object_is_validated_then_priced_then_predicted() -> None:
    thing = Thing()
    found = planned(thing)
    assert thing.asked == ["validate name", "takeover", "cost"]
    assert (found.action, found.cost, found.refusals) == ("created", FIVE, {})
    assert found.predicted == {"name": "a"}


def test_what_is_taken_over_costs_nothing() -> None:
    taken = Takeover(ThingState(id="7", name="a"), "it has the tag")
    found = planned(Thing(taken=taken))
    assert (found.takeover, found.cost) == (taken, None)
    assert found.predicted == {"id": "7", "name": "a", "mode": "live"}


@pytest.mark.parametrize(("field", "cost"), [("existing", None), ("transfer_code", FIVE)])
def test_what_is_adopted_costs_nothing_and_what_is_transferred_does(field: str, cost: Cost | None) -> None:
    """The trait says it, whatever the field is called; both decide whether anything is ordered."""
    assert planned(Thing(), desired={"name": "a", field: "7"}).cost == cost
    assert planned(Thing(), unknown=(field,)).cost is None


def test_what_the_account_refuses_is_neither_taken_over_nor_priced() -> None:
    thing = Thing(failures={"name": "is taken"})
    assert planned(thing).refusals == {"name": "is taken"}
    assert thing.asked == ["validate name"]


def test_a_missing_scope_is_refused_or_a_warning() -> None:
    with pytest.raises(KeyLacksScope, match="lacks things:write, needed to create a thing"):
        planned(Thing(), scopes=())
    found = planned(Thing(), scopes=(), options=PlanOptions(scopes="warn"))
    assert len(found.warnings) == 1
    assert found.cost == FIVE


@pytest.mark.parametrize(
    ("unknown", "reason"),
    [
        (("tariff_id",), "tariff_id is known"),
        (("server_id",), "its server exists"),
        (("tariff_id", "promo_code", "notes"), "promo_code is known and tariff_id is known"),
    ],
)
def test_a_price_that_is_not_known_yet_has_a_line(unknown: tuple[str, ...], reason: str) -> None:
    thing = Thing()
    found = planned(thing, unknown=unknown)
    assert "cost" not in thing.asked
    assert found.remarks == (f"price of thing: not known before {reason}",)


def test_whether_anything_is_ordered_may_be_unknown() -> None:
    thing = Thing()
    planned(thing, unknown=("existing",))
    assert thing.asked == []


def test_without_a_price_nothing_asks_for_one() -> None:
    thing = Thing()
    assert planned(thing, priced=False).cost is None
    assert "cost" not in thing.asked


@pytest.mark.parametrize(
    "error",
    [
        TransportError("no route", outcome_unknown=False),
        ApiError(message="down", status=500, code="x"),
        ApiError(message="down", status=503, code="x"),
        ApiError(message="slow", status=429, code="x"),
    ],
)
def test_an_account_that_cannot_answer_is_an_error_or_an_unchecked_plan(error: HostingError) -> None:
    with pytest.raises(type(error)):
        planned(Thing(error=error))
    assert planned(Thing(error=error), unreachable="warn") == Plan("created", unchecked=error)
    changed = planned(Thing(error=error), unreachable="warn", recorded={"name": "b"})
    assert changed == Plan("updated", unchecked=error)


def test_a_refusal_of_the_service_is_always_an_error() -> None:
    with pytest.raises(NotFound):
        planned(Thing(error=NotFound(message="gone", status=404, code="not_found")), unreachable="warn")


def test_where_the_account_is_known_to_be_out_of_reach_nothing_is_asked() -> None:
    thing, error = Thing(), TransportError("no route", outcome_unknown=False)
    assert planned(thing, unreachable="warn", reach=lambda: error).unchecked is error
    assert thing.asked == []


def test_a_declaration_that_did_not_change_asks_nothing() -> None:
    thing = Thing()
    assert planned(thing, recorded={"name": "a"}).action == "unchanged"
    assert thing.asked == []


def test_of_a_changed_declaration_only_what_is_new_is_validated() -> None:
    thing = Thing()
    found = planned(thing, desired={"name": "b", "tariff_id": 1}, recorded={"name": "a", "tariff_id": 1})
    assert found.action == "updated"
    assert thing.asked == ["validate name"]


def test_an_object_as_it_is_needs_no_account_to_be_compared() -> None:
    thing = Thing()
    found = planned(thing, desired={"name": "b"}, current=ThingState(id="7", name="a", mode="live"))
    assert [(change.field, change.before, change.after) for change in found.changes.changes] == [
        ("name", "a", "b")
    ]
    assert (found.action, found.predicted) == ("updated", {"id": "7", "name": "b", "mode": "live"})
    assert thing.asked == []
