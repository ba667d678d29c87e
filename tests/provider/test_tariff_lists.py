"""``tariff=["VDS-2", "VDS-3"]``: an order of preference. One server, whatever is in stock; what was taken is
recorded, and no later difference."""

import json
from typing import Any

import httpx
import pytest

from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.provider.conversion import UNKNOWN
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.session.errors import Failed
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account

LIST: dict[str, Any] = {"tariff": ["VDS-2", "VDS-3"], "os": "debian-12", "name": "web"}


@pytest.fixture(name="account")
def account_with_a_third(account: Account) -> Account:
    account.control("POST", "/tariffs", {"id": 7, "name": "VDS-3", "price_monthly": "15.00"})
    return account


def sell(account: Account, **in_stock: bool) -> None:
    """Set what is in stock, by ``t2=False``."""
    for name, there in in_stock.items():
        account.control("PATCH", f"/tariffs/{name[1:]}", {"in_stock": there})


def orders(account: Account) -> list[tuple[int, str]]:
    """Tariff and key of every order that was sent."""
    return [
        (entry["body"]["tariff_id"], entry["headers"]["idempotency-key"])
        for entry in account.control("GET", "/requests")
        if (entry["method"], entry["path"]) == ("POST", "/servers")
    ]


def tariffs(account: Account) -> list[int]:
    return [server["tariff_id"] for server in account.living]


def bought_second(account: Account, given: dict[str, Any] = LIST) -> tuple[Process, Entry]:
    sell(account, t2=False)
    process = provider_process(account)
    made = process.create("server", "web", given)
    assert (tariffs(account), account.charges) == ([7], 1)
    return process, made


def test_the_first_that_can_be_had_is_ordered(account: Account) -> None:
    process = provider_process(account)
    made = process.create("server", "web", LIST)
    assert (made.inputs["tariffs"], made.inputs["tariffIds"]) == (["VDS-2", "VDS-3"], [2, 7])
    assert (made.outputs["tariff"], made.outputs["tariffId"]) == ("VDS-2", 2)
    assert (tariffs(account), account.charges, len(orders(account))) == ([2], 1, 1)
    assert any(line.startswith("web: charged 10.00 EUR (VDS-2, 1 month)") for line in process.lines)


@pytest.mark.parametrize(
    ("change", "code"), [({"in_stock": False}, "no_capacity"), ({"disabled": True}, "tariff_unavailable")]
)
def test_a_refused_one_is_followed_by_the_next_under_its_own_key(
    account: Account, change: dict[str, Any], code: str
) -> None:
    process = provider_process(account)
    inputs = process.check("server", "web", LIST)
    account.control("PATCH", "/tariffs/2", change)  # after the plan
    id, outputs = process.of("server").create(inputs)
    assert (outputs["tariff"], outputs["tariffId"]) == ("VDS-3", 7)
    (first, key), (second, other) = orders(account)
    assert (first, second, key == other) == (2, 7, False)
    assert any(f"409 {code}); ordering VDS-3 instead" in line for line in process.lines)
    assert any(line.startswith("web: charged 15.00 EUR (VDS-3, 1 month)") for line in process.lines)
    assert (account.living_ids, account.charges) == ([id], 1)


def test_all_refused_names_each_with_its_reason_and_the_next_step(account: Account) -> None:
    process = provider_process(account)
    inputs = process.check("server", "web", LIST)
    sell(account, t2=False)
    account.control("PATCH", "/tariffs/7", {"disabled": True})
    for _ in range(2):  # and again
        with pytest.raises(Failed) as caught:
            process.of("server").create(inputs)
        assert str(caught.value) == (
            "server 'web': none of its tariffs can be ordered: VDS-2: the tariff is out of stock "
            "(409 no_capacity); VDS-3: the tariff cannot be ordered (409 tariff_unavailable); nothing was "
            "ordered. Next: add another tariff at the end of the list, or run again later"
        )
    assert (account.living, account.charges) == ([], 0)
    added = process.check("server", "web", {**LIST, "tariff": ["VDS-2", "VDS-1"]})
    process.of("server").create(added)
    assert (tariffs(account), account.charges) == ([1], 1)


def test_other_refusals_stop_at_once(account: Account) -> None:
    process = provider_process(account)
    inputs = process.check("server", "web", LIST)
    account.control("PATCH", "/account", {"balance": "0.00"})
    with pytest.raises(Exception, match="402"):
        process.of("server").create(inputs)
    assert [tariff for tariff, _ in orders(account)] == [2]


# --- interrupted


class Cut(Transport):
    """Carries out the order with this number and loses its answer; the process then sends nothing more."""

    def __init__(self, account: Account, number: int) -> None:
        super().__init__(account.core, sleep=lambda seconds: None)
        self.left, self.is_dead = number, False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_dead:
            raise httpx.ConnectError("dead")
        answer = super().handle_request(request)
        if request.method == "POST" and request.url.path == "/v1/servers":
            self.left -= 1
            self.is_dead = self.left == 0
            if self.is_dead:
                raise httpx.ReadError("cut")
        return answer


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("again", [["VDS-2", "VDS-3"], ["VDS-3", "VDS-2"], ["VDS-1", "VDS-2", "VDS-3"]])
def test_the_lost_answer_of_the_second_is_found_though_the_first_can_be_had_again(
    account: Account, stored: bool, again: list[str]
) -> None:
    account.control("PATCH", "/service", {"readings": {"refusals_stored": stored}})
    sell(account, t2=False)
    killed = provider_process(account, Cut(account, 2))
    with pytest.raises(Exception, match=r"not known"):
        killed.create("server", "web", LIST)
    assert tariffs(account) == [7]
    sell(account, t2=True)
    made = provider_process(account).create("server", "web", {**LIST, "tariff": again})
    assert (made.outputs["tariff"], tariffs(account), account.charges) == ("VDS-3", [7], 1)


@pytest.mark.parametrize("stored", [True, False])
def test_after_the_refusal_of_the_first_a_killed_run_has_bought_nothing(
    account: Account, stored: bool
) -> None:
    account.control("PATCH", "/service", {"readings": {"refusals_stored": stored}})
    sell(account, t2=False)
    with pytest.raises(Exception, match=r"not known"):
        provider_process(account, Cut(account, 1)).create("server", "web", LIST)
    assert account.living == []
    sell(account, t2=True)
    provider_process(account).create("server", "web", LIST)
    assert (tariffs(account), account.charges) == ([2], 1)


# --- afterwards


def test_what_was_taken_is_no_difference_in_any_order_or_after_a_change_of_the_catalog(
    account: Account,
) -> None:
    _, made = bought_second(account)
    sell(account, t2=True)
    later = provider_process(account)
    for names in (["VDS-2", "VDS-3"], ["VDS-3", "VDS-2"], ["VDS-1", "VDS-3"], "VDS-3"):
        news = later.check("server", "web", {**LIST, "tariff": names}, olds=made.inputs)
        assert not later.of("server").diff(made.id, made.outputs, news).changes, names
    account.control("PATCH", "/tariffs/2", {"disabled": True})
    account.control("PATCH", "/tariffs/7", {"disabled": True})
    last = provider_process(account)
    before = len(account.requested("GET"))
    news = last.check("server", "web", LIST, olds=made.inputs)
    assert "/catalog/tariffs" not in account.requested("GET")[before:]
    read = last.of("server", native=True).read(made.id, made.outputs, made.inputs)
    assert read is not None
    assert (read[2]["tariffs"], read[2]["tariffIds"]) == (["VDS-2", "VDS-3"], [2, 7])
    assert not last.of("server").diff(made.id, read[1], news).changes
    assert last.check("server", "web", LIST, olds=read[2])["tariffIds"] == [2, 7]
    assert (tariffs(account), account.charges) == ([7], 1)


@pytest.mark.parametrize(
    "given", [{"tariff": ["VDS-2", "VDS-1"]}, {"tariff": "VDS-2"}, {"tariffId": [2.0, 1.0], "tariff": None}]
)
def test_a_list_without_what_was_taken_replaces(account: Account, given: dict[str, Any]) -> None:
    process, made = bought_second(account)
    sell(account, t2=True)
    news = process.check("server", "web", {**LIST, **given}, olds=made.inputs)
    assert process.of("server").diff(made.id, made.outputs, news).replaces == ("tariffId",)


def test_ids_in_order_of_preference_do_the_same(account: Account) -> None:
    given = {"tariffId": [2.0, 7.0], "os": "debian-12", "name": "web"}
    process, made = bought_second(account, given)
    assert (made.inputs["tariffIds"], made.outputs["tariffId"]) == ([2, 7], 7)
    read = process.of("server", native=True).read(made.id, made.outputs, made.inputs)
    assert read is not None
    assert read[2]["tariffIds"] == [2, 7]
    news = process.check("server", "web", given, olds=read[2])
    assert not process.of("server").diff(made.id, read[1], news).changes


def test_a_server_that_was_moved_to_a_tariff_outside_the_list_differs(account: Account) -> None:
    process, made = bought_second(account)
    account.core.store.servers[int(made.id)].tariff_id = 1
    read = provider_process(account).of("server", native=True).read(made.id, made.outputs, made.inputs)
    assert read is not None
    news = process.check("server", "web", LIST, olds=read[2])
    assert process.of("server").diff(made.id, read[1], news).replaces == ("tariffId",)


@pytest.mark.parametrize(("names", "fits"), [(["VDS-2", "VDS-3"], True), (["VDS-2", "VDS-1"], False)])
def test_an_adopted_server_may_have_any_of_them(account: Account, names: list[str], fits: bool) -> None:
    server = account.api("POST", "/servers", {"tariff_id": 7, "os": "debian-12", "name": "web"}).json()[
        "server"
    ]
    given = {**LIST, "tariff": names, "adoptId": str(server["id"])}
    adapter = provider_process(account).of("server")
    inputs, failures = adapter.check({}, {**given, IDENTITY: "pulumi:t/dev/server/web"})
    if not fits:
        assert "tariff_id is 7, not 2 or 1" in failures[""]
        return
    id, outputs = adapter.create(inputs)
    assert (id, outputs["tariff"], account.charges) == (str(server["id"]), "VDS-3", 1)
    assert not adapter.diff(id, outputs, inputs).changes


# --- before anything is sent


@pytest.mark.parametrize(
    ("t2", "said"),
    [
        (True, "at most 15.00 EUR (VDS-2, or VDS-3 if that cannot be ordered, 1 month)"),
        (False, "at most 15.00 EUR (VDS-3, unless VDS-2 can be ordered by then, 1 month)"),
    ],
)
@pytest.mark.parametrize("key", ["live_key", "test_key"])
def test_the_preview_says_which_and_has_the_highest_price(
    account: Account, t2: bool, said: str, key: str
) -> None:
    sell(account, t2=t2)
    process = provider_process(account, apiKey=getattr(account, key))
    inputs = process.check("server", "web", LIST)
    verb = "will" if key == "live_key" else "would"
    assert any(line.startswith(f"web: {verb} charge {said}; run total 15.00 EUR") for line in process.lines)
    shown = process.of("server", native=True).preview_create(inputs)
    assert (shown["tariff"], shown["tariffId"], shown["charged"]) == (UNKNOWN, UNKNOWN, "15.00")
    updated = process.of("server", native=True).preview_update(
        "20001", {"tariff": "VDS-3", "tariffId": 7.0, "name": "web", "os": "debian-12"}, inputs
    )
    assert (updated["tariff"], updated["tariffId"]) == ("VDS-3", 7)


@pytest.mark.parametrize("settings", [{"maxCharge": "14.99"}, {"budget": "14.99/month"}])
def test_limits_are_compared_with_the_highest_price_of_all(
    account: Account, settings: dict[str, Any]
) -> None:
    sell(account, t7=False)  # it may come back
    _, failures = (
        provider_process(account, **settings)
        .of("server")
        .check({}, {**LIST, IDENTITY: "pulumi:t/dev/server/web"})
    )
    assert "15.00 EUR" in failures[""], failures
    assert account.living == []


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        ({"tariff": []}, "tariff", "is empty: name at least one"),
        ({"tariff": ["VDS-2", "vds-2 "]}, "tariff", "entry 2 repeats entry 1: name each once"),
        ({"tariff": ["VDS-2", "VDS-22"]}, "tariff", "there is no tariff named 'VDS-22': did you mean"),
        ({"tariff": ["VDS-2", 3.0]}, "tariff", "[1] must be a text, and is a number"),
        ({"tariff": 3.0}, "tariff", "must be a text, and is a number"),
        ({"tariffId": [2.0, 2.0], "tariff": None}, "tariff_id", "entry 2 repeats entry 1: name each once"),
        ({"tariffId": [2.0, 99.0], "tariff": None}, "tariff_id", "there is no tariff 99: choose one of"),
        ({"tariffId": [], "tariff": None}, "tariff_id", "is empty: name at least one"),
        ({"tariffId": 2.0}, "tariff", "['VDS-2', 'VDS-3'] is [2, 7], and tariff_id is 2: give"),
        ({"tariff": ["VDS-4", "VDS-2"], "os": "alpine-3"}, "os", "there is no image"),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_ordered_is_refused_by_name(
    account: Account, given: dict[str, Any], field: str, reason: str
) -> None:
    _, failures = (
        provider_process(account)
        .of("server")
        .check({}, {**LIST, **given, IDENTITY: "pulumi:t/dev/server/web"})
    )
    assert failures.keys() == {field}
    assert failures[field].startswith(reason), failures[field]
    assert orders(account) == []


def test_a_list_of_which_none_is_in_stock_is_refused_before_it_is_ordered(account: Account) -> None:
    sell(account, t2=False, t7=False)
    _, failures = provider_process(account).of("server").check({}, {**LIST, IDENTITY: "pulumi:t/d/server/w"})
    assert failures["tariff"].startswith(
        "tariffs 2 (VDS-2), 7 (VDS-3) are all out of stock: choose one of 1 (VDS-1)"
    )


def test_a_list_of_one_is_that_one(account: Account) -> None:
    inputs = provider_process(account).check("server", "web", {**LIST, "tariff": ["VDS-1"]})
    assert (inputs["tariff"], inputs["tariffId"]) == ("VDS-1", 1)


def test_the_schema_takes_a_name_or_a_list() -> None:
    from pulumi_hosting.provider.plugin.package_schema import package_spec

    server = package_spec("1.0.0")["resources"]["hosting:index:Server"]
    kinds = [kind["type"] for kind in server["inputProperties"]["tariff"]["oneOf"]]
    assert (kinds, server["properties"]["tariff"]["type"]) == (["string", "array"], "string")
    assert json.dumps(server["inputProperties"]["tariffId"]["oneOf"]).count("integer") == 2
