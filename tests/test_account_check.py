"""The account check can fail: each kind of lie is told by a sentence, and a true account by none."""

from typing import Any

import pytest

from pulumi_hosting.rehearsal.account_check import AccountCheck, check
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.emulator.support import DAY, PUBLIC_KEY, EmulatorHarness

KEY = "iac2-made-by-the-tool-{}"


class Shop:
    """An account with one of everything, as a tool would have bought it, and the stack that holds it all."""

    def __init__(self, **options: Any) -> None:
        self.lab = EmulatorHarness(**options)
        self.bought = 0
        self.resources: list[dict[str, Any]] = []

    def buy(self, path: str, body: Any = None, **options: Any) -> Any:
        self.bought += 1
        options.setdefault("key", KEY.format(self.bought))
        return self.lab.api("POST", path, body, **options).json()

    def hold(self, type: str, id: object, name: str = "it", **more: Any) -> None:
        urn = f"urn:pulumi:dev::shop::hosting:index:{type}::{name}"
        self.resources.append({"urn": urn, "type": f"hosting:index:{type}", "id": str(id), "outputs": {"mode": "live"}, **more})

    def server(self, name: str = "web", *, held: bool = True, **body: Any) -> int:
        id: int = self.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": name, "months": 1, **body})["server"]["id"]
        if held:
            self.hold("Server", id, name)
        return id

    def address(self, server: int) -> int:
        self.buy(f"/servers/{server}/ips")
        addresses = self.lab.control("GET", "/objects")["addresses"]
        return int(max(row["id"] for row in addresses if row["bought"] and row["server_id"] == server))

    @property
    def claims(self) -> ManagedObjects:
        return ManagedObjects.of_stack({"deployment": {"resources": self.resources}})

    def problems(self, **options: Any) -> list[str]:
        return check(self.lab.control, self.claims, **options)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_consistent_account_has_no_problems(shop: Shop) -> None:
    assert shop.problems() == []
    server = shop.server()
    shop.hold("ServerIp", f"{server}/{shop.address(server)}")
    ptr = next(row["id"] for row in shop.lab.control("GET", "/objects")["addresses"] if row["primary"])
    shop.lab.api("PUT", f"/servers/{server}/ips/{ptr}/ptr", {"domain": "a.example.com"})
    shop.hold("Ptr", f"{server}/{ptr}")
    shop.hold("SshKey", shop.lab.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY}).json()["id"])
    shop.hold("WebhookSubscription", shop.lab.subscribe()["id"])
    shop.buy("/domains", {"name": "shop-1.com"})
    shop.hold("Domain", shop.lab.control("GET", "/objects")["domains"][0]["id"])
    assert shop.problems() == []
    shop.resources.append({"urn": "u::x::p", "type": "pulumi:providers:hosting", "id": "x"})
    shop.hold("Server", 99, external=True)
    assert shop.problems() == []


def test_an_unmanaged_server(shop: Shop) -> None:
    id = shop.server(held=False)
    assert shop.problems() == [f"server {id} (web, 5.00 EUR per month) is live and in no state"]
    assert shop.problems(allowed=[id]) == []
    assert AccountCheck(shop.lab.control).empty() == shop.problems()


def test_a_managed_server_that_does_not_exist(shop: Shop) -> None:
    id = shop.server()
    shop.lab.api("DELETE", f"/servers/{id}")
    assert shop.problems() == [f"server {id} (web) is in a state and not on the account"]
    shop.resources[0]["delete"] = True  # still to be deleted: that it is gone already is no lie
    assert shop.problems() == []


@pytest.mark.parametrize(("type", "id"), [("Domain", "70009"), ("SshKey", "60009"), ("ServerIp", "1/2"), ("WebhookSubscription", "80009")])
def test_a_managed_object_that_does_not_exist(shop: Shop, type: str, id: str) -> None:
    shop.hold(type, id)
    (problem,) = shop.problems()
    assert id in problem
    assert "not on the account" in problem


def test_an_unmanaged_address(shop: Shop) -> None:
    server = shop.server()
    id = shop.address(server)
    (problem,) = shop.problems()
    assert problem.startswith(f"address {server}/{id} (")
    assert problem.endswith("2.00 per month) is live and in no state")
    assert shop.problems(allowed=[id]) == []


def test_an_address_not_assigned_yet() -> None:
    shop = Shop(ip_delay=60)
    server = shop.server()
    shop.buy(f"/servers/{server}/ips")
    assert shop.problems() == [f"server {server} (web) gets an address that is paid and in no state"]
    shop.hold("ServerIp", f"pending:{server}/0")
    assert shop.problems() == []
    shop.lab.advance(61)
    assert shop.problems() == []  # the claim is for the address that has come


def test_an_unmanaged_ptr_record(shop: Shop) -> None:
    server = shop.server()
    ptr = next(row["id"] for row in shop.lab.control("GET", "/objects")["addresses"] if row["primary"])
    shop.lab.api("PUT", f"/servers/{server}/ips/{ptr}/ptr", {"domain": "a.example.com"})
    (problem,) = shop.problems()
    assert "reverse DNS a.example.com" in problem
    assert shop.problems(allowed=[ptr]) == []


def test_an_unmanaged_key_and_webhook(shop: Shop) -> None:
    shop.lab.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})
    shop.lab.subscribe()
    first, second = shop.problems()
    assert first.startswith("ssh key 60001 (me, ")
    assert second.startswith("webhook subscription 80001 (https://")


def test_a_domain_may_stay_if_it_does_not_renew_and_the_output_says_so(shop: Shop) -> None:
    shop.buy("/domains", {"name": "shop-1.com", "auto_renew": True})
    said = "shop: domain shop-1.com (id 70001) stays until 2027-01-15: the API cannot delete domains"
    assert shop.problems(printed=said) == ["domain 70001 (shop-1.com) is live and in no state, and renews itself"]
    shop.lab.api("PATCH", "/domains/70001", {"auto_renew": False})
    assert shop.problems() == ["domain 70001 (shop-1.com) is live and in no state, and nothing said that it stays"]
    account = AccountCheck(shop.lab.control)
    assert account.empty(printed=said) == []
    assert account.empty() == []  # said once is enough


def test_an_unmanaged_order() -> None:
    shop = Shop(provisioning_delay=60)
    shop.lab.fault({"panel_timeout": "active"}, method="POST", path="^/servers$")
    shop.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": "web"})
    assert shop.problems() == ["order 40001 (server web, 5.00 paid) is being delivered and in no state"]
    shop.hold("Server", "order:40001", "web")
    assert shop.problems() == []
    shop.lab.advance(61)
    assert shop.problems() == []
    assert check(shop.lab.control, ManagedObjects()) == ["server 20002 (web, 5.00 EUR per month) is live and in no state"]


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_an_order_that_failed_is_refunded(outcome: str) -> None:
    shop = Shop(provisioning_delay=60)
    shop.lab.fault({"panel_timeout": outcome}, method="POST", path="^/servers$")
    shop.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": "web"})
    shop.lab.advance(61)
    assert shop.problems() == []


def test_unexplained_charges(shop: Shop) -> None:
    server = shop.server()
    shop.buy(f"/servers/{server}/renew", {"months": 1})
    (problem,) = shop.problems()
    assert problem.startswith(f"charge of 5.00 for renew_server of object {server} ")
    assert "nothing explains" in problem
    assert check(shop.lab.control, shop.claims + ManagedObjects(operations=frozenset({"renew_server"}))) == []
    # A server that came and went, and that no state ever had: its purchase was not the tool's.
    shop = Shop()
    other = int(shop.buy("/servers", {"tariff_id": 6, "os": "debian-12", "name": "b"}, key="somebody-elses-key")["server"]["id"])
    shop.lab.api("DELETE", f"/servers/{other}")
    assert shop.problems() == [f"charge of 1.99 for server {other}, which is not on the account and was never in a state"]


def test_an_unexplained_refund(shop: Shop) -> None:
    """The tool deleted a server that was never its own."""
    other = int(shop.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": "b"}, key="somebody-elses-key")["server"]["id"])
    shop.lab.api("DELETE", f"/servers/{other}")
    (problem,) = shop.problems()
    assert problem.startswith(f"refund of 5.00 for server {other}, which was never in a state")
    account = AccountCheck(shop.lab.control, [other])
    assert account.empty() == []


def test_a_deleted_server_without_refund(shop: Shop) -> None:
    account = AccountCheck(shop.lab.control)
    server = shop.server()
    assert account.check(shop.claims) == []
    shop.lab.control("DELETE", f"/servers/{server}")  # behind everybody's back: nothing is credited
    assert account.empty() == [f"charge of 5.00 for server {server}, which is gone, was not refunded"]


@pytest.mark.parametrize("tariff", [1, 6])
def test_a_deletion_with_its_refund_is_explained(shop: Shop, tariff: int) -> None:
    """Of a promotional tariff (6) nothing is refunded, nor when the paid time is over."""
    account = AccountCheck(shop.lab.control)
    server = shop.server(tariff_id=tariff)
    assert account.check(shop.claims) == []
    shop.lab.api("DELETE", f"/servers/{server}")
    assert account.empty() == []
    shop.resources.clear()
    late = shop.server("late")
    assert account.check(shop.claims) == []
    shop.lab.advance(30 * DAY - 60)
    shop.lab.api("DELETE", f"/servers/{late}")
    assert account.empty() == []


@pytest.mark.parametrize("with_server", [False, True])
def test_a_forfeited_refund_of_an_address(shop: Shop, with_server: bool) -> None:
    account = AccountCheck(shop.lab.control)
    server = shop.server()
    address = shop.address(server)
    more = {"deletedWith": shop.resources[0]["urn"]} if with_server else {}
    shop.hold("ServerIp", f"{server}/{address}", **more)
    assert account.check(shop.claims) == []
    shop.lab.api("DELETE", f"/servers/{server}/ips/{address}")
    shop.lab.api("DELETE", f"/servers/{server}")
    expected = [f"charge of 2.00 for an address of server {server}: released before its server, so not refunded"]
    assert account.empty() == (expected if with_server else [])


def test_an_address_released_alone_is_explained(shop: Shop) -> None:
    account = AccountCheck(shop.lab.control)
    server = shop.server()
    address = shop.address(server)
    shop.hold("ServerIp", f"{server}/{address}", deletedWith=shop.resources[0]["urn"])
    assert account.check(shop.claims) == []
    shop.lab.api("DELETE", f"/servers/{server}/ips/{address}")
    shop.resources.pop()
    assert account.check(shop.claims) == []
    shop.lab.api("DELETE", f"/servers/{server}")
    assert account.empty() == []


def test_of_a_test_key_only_servers_are_compared(shop: Shop) -> None:
    made = shop.lab.test("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "name": "toy"}).json()["server"]["id"]
    assert shop.problems() == [f"sandbox server {made} (toy, 5.00 EUR per month) is live and in no state"]
    shop.hold("Server", made, outputs={"mode": "test"})
    shop.hold("SshKey", 60001, outputs={"mode": "test"})
    assert shop.problems() == []
    shop.lab.test("DELETE", f"/servers/{made}")
    assert shop.problems() == [f"server {made} (it) is in a state and not on the account"]


def test_several_stacks_are_checked_together(shop: Shop) -> None:
    first, second = shop.server("a", held=False), shop.server("b", held=False)
    stacks = []
    for id in (first, second):
        shop.resources = []
        shop.hold("Server", id)
        stacks.append({"deployment": {"resources": shop.resources}})
    assert check(shop.lab.control, ManagedObjects.of_stack(*stacks)) == []
    assert len(check(shop.lab.control, ManagedObjects.of_stack(stacks[0], {"deployment": None}))) == 1


def test_automatic_renewals_are_explained(shop: Shop) -> None:
    shop.server()
    shop.lab.advance(31 * DAY)
    assert any(row["operation"] == "billing" for row in shop.lab.control("GET", "/ledger"))
    assert shop.problems() == []


def test_results_of_tasks(shop: Shop) -> None:
    server = shop.server(held=False)
    made = {"changed": True, "server": {"id": str(server), "name": "web", "mode": "live"}}
    assert check(shop.lab.control, ManagedObjects.of_results([made])) == []
    assert check(shop.lab.control, ManagedObjects.of_results([{"results": [made]}])) == []
    # A task that failed holds what it says that it had made by then, and nothing else.
    assert check(shop.lab.control, ManagedObjects.of_results([{**made, "failed": True}])) == []
    assert len(check(shop.lab.control, ManagedObjects.of_results([{**made, "failed": True, "changed": False}]))) == 1
    shop.buy(f"/servers/{server}/renew", {"months": 1})
    renewed = {"changed": True, "server_renew": {"id": str(server)}, "charge": {"amount": "5.00"}}
    assert check(shop.lab.control, ManagedObjects.of_results([made, renewed])) == []
    assert len(check(shop.lab.control, ManagedObjects.of_results([made]))) == 1
    shop.lab.api("DELETE", f"/servers/{server}")
    absent = {"changed": True, "server": None, "invocation": {"module_args": {"name": "web"}}}
    assert check(shop.lab.control, ManagedObjects.of_results([made, renewed, absent])) == []


def test_objects_that_tasks_remove_by_name_or_key_are_not_managed_any_more() -> None:
    made = [
        {"server": {"id": "20001", "name": "web"}},
        {"server_ip": {"id": "20001/30002"}},
        {"ptr": {"id": "20001/30001"}},
        {"ptr": {"id": "20002/30003"}},
        {"ssh_key": {"id": "60001", "name": "me", "public_key": "ssh-ed25519 AAAA me@here"}},
        {"ssh_key": {"id": "60002", "name": "you", "public_key": "ssh-ed25519 BBBB you@there"}},
    ]
    removed = [
        {"server": None, "invocation": {"module_args": {"name": "web", "id": None}}},
        {"ssh_key": None, "invocation": {"module_args": {"name": None, "public_key": "ssh-ed25519 AAAA another comment"}}},
    ]
    assert [claim.id for claim in ManagedObjects.of_results([*made, *removed])] == ["20002/30003", "60002"]


@pytest.mark.emulator(clock="manual")
def test_objects_deleted_outside_are_no_problem(emulator: Any) -> None:
    control = Control(emulator.control_url)
    made = control("POST", "/servers", {"name": "given"})
    claims = ManagedObjects.of_stack(
        {"deployment": {"resources": [{"urn": "a::web", "type": "hosting:index:Server", "id": str(made["id"]), "outputs": {}}]}}
    )
    assert check(control, claims) == []
    control("DELETE", f"/servers/{made['id']}")
    assert check(control, claims) == []
    control("POST", "/reset", {})
    assert len(check(control, claims)) == 1


def test_an_adopted_key_may_stay_if_the_output_says_so(shop: Shop) -> None:
    shop.lab.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})
    account = AccountCheck(shop.lab.control)
    assert account.empty(printed="SSH key me (60002) stays") != []
    assert account.empty(printed="SSH key me (60001) stays: it was not created here") == []
    assert account.empty() == []
