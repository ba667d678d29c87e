"""The account check: one sentence for each kind of problem, none for a consistent account."""

from typing import Any

import pytest

from pulumi_hosting.rehearsal.account_check import AccountCheck, check
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.emulator.support import DAY, PUBLIC_KEY
from tests.support.account import Account

KEY = "iac2-made-by-the-tool-{}"


class Tool:
    """Buys objects on an emulated account and manages them in a stack."""

    def __init__(self, **options: Any) -> None:
        self.emulated = Account(**options)
        self.bought = 0
        self.resources: list[dict[str, Any]] = []

    def buy(self, path: str, body: Any = None, **options: Any) -> Any:
        self.bought += 1
        options.setdefault("key", KEY.format(self.bought))
        return self.emulated.api("POST", path, body, **options).json()

    def manage(self, type: str, id: object, name: str = "it", **more: Any) -> None:
        urn = f"urn:pulumi:dev::shop::hosting:index:{type}::{name}"
        self.resources.append(
            {"urn": urn, "type": f"hosting:index:{type}", "id": str(id), "outputs": {"mode": "live"}, **more}
        )

    def server(self, name: str = "web", *, managed: bool = True, **body: Any) -> int:
        id: int = self.buy(
            "/servers", {"tariff_id": 1, "os": "debian-12", "name": name, "months": 1, **body}
        )["server"]["id"]
        if managed:
            self.manage("Server", id, name)
        return id

    def address(self, server: int) -> int:
        self.buy(f"/servers/{server}/ips")
        addresses = self.emulated.control("GET", "/objects")["addresses"]
        return int(max(row["id"] for row in addresses if row["bought"] and row["server_id"] == server))

    @property
    def managed(self) -> ManagedObjects:
        return ManagedObjects.of_stack({"deployment": {"resources": self.resources}})

    def problems(self, **options: Any) -> list[str]:
        return check(self.emulated.control, self.managed, **options)


@pytest.fixture
def tool() -> Tool:
    return Tool()


def test_a_consistent_account_has_no_problems(tool: Tool) -> None:
    assert tool.problems() == []
    server = tool.server()
    tool.manage("ServerIp", f"{server}/{tool.address(server)}")
    ptr = next(row["id"] for row in tool.emulated.control("GET", "/objects")["addresses"] if row["primary"])
    tool.emulated.api("PUT", f"/servers/{server}/ips/{ptr}/ptr", {"domain": "a.example.com"})
    tool.manage("Ptr", f"{server}/{ptr}")
    tool.manage(
        "SshKey",
        tool.emulated.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY}).json()["id"],
    )
    tool.manage("WebhookSubscription", tool.emulated.subscribe()["id"])
    tool.buy("/domains", {"name": "shop-1.com"})
    tool.manage("Domain", tool.emulated.control("GET", "/objects")["domains"][0]["id"])
    assert tool.problems() == []
    tool.resources.append({"urn": "u::x::p", "type": "pulumi:providers:hosting", "id": "x"})
    tool.manage("Server", 99, external=True)
    assert tool.problems() == []


def test_an_unmanaged_server(tool: Tool) -> None:
    id = tool.server(managed=False)
    assert tool.problems() == [f"server {id} (web, 5.00 EUR per month) is live and in no state"]
    assert tool.problems(allowed=[id]) == []
    assert AccountCheck(tool.emulated.control).empty() == tool.problems()


def test_a_managed_server_that_does_not_exist(tool: Tool) -> None:
    id = tool.server()
    tool.emulated.api("DELETE", f"/servers/{id}")
    assert tool.problems() == [f"server {id} (web) is in a state and not on the account"]
    tool.resources[0]["delete"] = True  # the tool still has to delete it: it may be gone
    assert tool.problems() == []


@pytest.mark.parametrize(
    ("type", "id"),
    [("Domain", "70009"), ("SshKey", "60009"), ("ServerIp", "1/2"), ("WebhookSubscription", "80009")],
)
def test_a_managed_object_that_does_not_exist(tool: Tool, type: str, id: str) -> None:
    tool.manage(type, id)
    (problem,) = tool.problems()
    assert id in problem
    assert "not on the account" in problem


def test_an_unmanaged_address(tool: Tool) -> None:
    server = tool.server()
    id = tool.address(server)
    (problem,) = tool.problems()
    assert problem.startswith(f"address {server}/{id} (")
    assert problem.endswith("2.00 per month) is live and in no state")
    assert tool.problems(allowed=[id]) == []


def test_an_address_not_assigned_yet() -> None:
    tool = Tool(ip_delay=60)
    server = tool.server()
    tool.buy(f"/servers/{server}/ips")
    assert tool.problems() == [f"server {server} (web) gets an address that is paid and in no state"]
    tool.manage("ServerIp", f"pending:{server}/0")
    assert tool.problems() == []
    tool.emulated.advance(61)
    assert tool.problems() == []  # the managed address is the one assigned meanwhile


def test_an_unmanaged_ptr_record(tool: Tool) -> None:
    server = tool.server()
    ptr = next(row["id"] for row in tool.emulated.control("GET", "/objects")["addresses"] if row["primary"])
    tool.emulated.api("PUT", f"/servers/{server}/ips/{ptr}/ptr", {"domain": "a.example.com"})
    (problem,) = tool.problems()
    assert "reverse DNS a.example.com" in problem
    assert tool.problems(allowed=[ptr]) == []


def test_an_unmanaged_key_and_webhook(tool: Tool) -> None:
    tool.emulated.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})
    tool.emulated.subscribe()
    first, second = tool.problems()
    assert first.startswith("ssh key 60001 (me, ")
    assert second.startswith("webhook subscription 80001 (https://")


def test_the_secret_of_a_url_is_in_no_label(tool: Tool) -> None:
    body = {"url": "https://hooks.example.com/x?token=cAnary", "events": ["*"]}
    tool.emulated.api("POST", "/webhooks", body)
    (problem,) = tool.problems()
    assert "(https://hooks.example.com/x?…, 0.00 per month)" in problem
    remaining = AccountCheck(tool.emulated.control).remaining()
    assert remaining == ["webhook subscription https://hooks.example.com/x?…"]
    assert "cAnary" not in problem + str(remaining)


def test_a_domain_may_stay_if_it_does_not_renew_and_the_output_says_so(tool: Tool) -> None:
    tool.buy("/domains", {"name": "shop-1.com", "auto_renew": True})
    said = "shop: domain shop-1.com (id 70001) stays until 2027-01-15: the API cannot delete domains"
    assert tool.problems(printed=said) == [
        "domain 70001 (shop-1.com) is live and in no state, and renews itself"
    ]
    tool.emulated.api("PATCH", "/domains/70001", {"auto_renew": False})
    assert tool.problems() == [
        "domain 70001 (shop-1.com) is live and in no state, and nothing said that it stays"
    ]
    account = AccountCheck(tool.emulated.control)
    assert account.empty(printed=said) == []
    assert account.empty() == []  # said once is enough


def test_an_unmanaged_order() -> None:
    tool = Tool(provisioning_delay=60)
    tool.emulated.fault({"panel_timeout": "active"}, method="POST", path="^/servers$")
    tool.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": "web"})
    assert tool.problems() == ["order 40001 (server web, 5.00 paid) is being delivered and in no state"]
    tool.manage("Server", "order:40001", "web")
    assert tool.problems() == []
    tool.emulated.advance(61)
    assert tool.problems() == []
    assert check(tool.emulated.control, ManagedObjects()) == [
        "server 20002 (web, 5.00 EUR per month) is live and in no state"
    ]


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_an_order_that_failed_is_refunded(outcome: str) -> None:
    tool = Tool(provisioning_delay=60)
    tool.emulated.fault({"panel_timeout": outcome}, method="POST", path="^/servers$")
    tool.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": "web"})
    tool.emulated.advance(61)
    assert tool.problems() == []


def test_unexplained_charges(tool: Tool) -> None:
    server = tool.server()
    tool.buy(f"/servers/{server}/renew", {"months": 1})
    (problem,) = tool.problems()
    assert problem.startswith(f"charge of 5.00 for renew_server of object {server} ")
    assert "nothing explains" in problem
    assert (
        check(tool.emulated.control, tool.managed + ManagedObjects(operations=frozenset({"renew_server"})))
        == []
    )
    # A server that came and went, and that no state ever had: its purchase was not the tool's.
    tool = Tool()
    other = int(
        tool.buy("/servers", {"tariff_id": 6, "os": "debian-12", "name": "b"}, key="key-of-another-tool")[
            "server"
        ]["id"]
    )
    tool.emulated.api("DELETE", f"/servers/{other}")
    assert tool.problems() == [
        f"charge of 1.99 for server {other}, which is not on the account and was never in a state"
    ]


def test_an_unexplained_refund(tool: Tool) -> None:
    """The tool deleted a server that was never its own."""
    other = int(
        tool.buy("/servers", {"tariff_id": 1, "os": "debian-12", "name": "b"}, key="key-of-another-tool")[
            "server"
        ]["id"]
    )
    tool.emulated.api("DELETE", f"/servers/{other}")
    (problem,) = tool.problems()
    assert problem.startswith(f"refund of 5.00 for server {other}, which was never in a state")
    account = AccountCheck(tool.emulated.control, [other])
    assert account.empty() == []


def test_a_deleted_server_without_refund(tool: Tool) -> None:
    account = AccountCheck(tool.emulated.control)
    server = tool.server()
    assert account.check(tool.managed) == []
    tool.emulated.control("DELETE", f"/servers/{server}")  # deleted outside: nothing is refunded
    assert account.empty() == [f"charge of 5.00 for server {server}, which is gone, was not refunded"]


def test_a_refund_of_the_days_that_are_left_is_enough(tool: Tool) -> None:
    account = AccountCheck(tool.emulated.control)
    server = tool.server()
    tool.emulated.control("POST", "/clock", {"advance": 10 * DAY})
    assert account.check(tool.managed) == []
    tool.emulated.api("DELETE", f"/servers/{server}")
    assert account.empty() == []


@pytest.mark.parametrize("tariff", [1, 6])
def test_a_deletion_with_its_refund_is_explained(tool: Tool, tariff: int) -> None:
    """Of a promotional tariff (6) nothing is refunded, nor when the paid time is over."""
    account = AccountCheck(tool.emulated.control)
    server = tool.server(tariff_id=tariff)
    assert account.check(tool.managed) == []
    tool.emulated.api("DELETE", f"/servers/{server}")
    assert account.empty() == []
    tool.resources.clear()
    late = tool.server("late")
    assert account.check(tool.managed) == []
    tool.emulated.advance(30 * DAY - 60)
    tool.emulated.api("DELETE", f"/servers/{late}")
    assert account.empty() == []


@pytest.mark.parametrize("with_server", [False, True])
def test_a_forfeited_refund_of_an_address(tool: Tool, with_server: bool) -> None:
    account = AccountCheck(tool.emulated.control)
    server = tool.server()
    address = tool.address(server)
    more = {"deletedWith": tool.resources[0]["urn"]} if with_server else {}
    tool.manage("ServerIp", f"{server}/{address}", **more)
    assert account.check(tool.managed) == []
    tool.emulated.api("DELETE", f"/servers/{server}/ips/{address}")
    tool.emulated.api("DELETE", f"/servers/{server}")
    expected = [
        f"charge of 2.00 for an address of server {server}: released before its server, so not refunded"
    ]
    assert account.empty() == (expected if with_server else [])


def test_an_address_released_alone_is_explained(tool: Tool) -> None:
    account = AccountCheck(tool.emulated.control)
    server = tool.server()
    address = tool.address(server)
    tool.manage("ServerIp", f"{server}/{address}", deletedWith=tool.resources[0]["urn"])
    assert account.check(tool.managed) == []
    tool.emulated.api("DELETE", f"/servers/{server}/ips/{address}")
    tool.resources.pop()
    assert account.check(tool.managed) == []
    tool.emulated.api("DELETE", f"/servers/{server}")
    assert account.empty() == []


def test_of_a_test_key_only_servers_are_compared(tool: Tool) -> None:
    made = tool.emulated.test("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "name": "toy"}).json()[
        "server"
    ]["id"]
    assert tool.problems() == [f"sandbox server {made} (toy, 5.00 EUR per month) is live and in no state"]
    tool.manage("Server", made, outputs={"mode": "test"})
    tool.manage("SshKey", 60001, outputs={"mode": "test"})
    assert tool.problems() == []
    tool.emulated.test("DELETE", f"/servers/{made}")
    assert tool.problems() == [f"server {made} (it) is in a state and not on the account"]


def test_several_stacks_are_checked_together(tool: Tool) -> None:
    first, second = tool.server("a", managed=False), tool.server("b", managed=False)
    stacks = []
    for id in (first, second):
        tool.resources = []
        tool.manage("Server", id)
        stacks.append({"deployment": {"resources": tool.resources}})
    assert check(tool.emulated.control, ManagedObjects.of_stack(*stacks)) == []
    assert len(check(tool.emulated.control, ManagedObjects.of_stack(stacks[0], {"deployment": None}))) == 1


def test_automatic_renewals_are_explained(tool: Tool) -> None:
    tool.server()
    tool.emulated.advance(31 * DAY)
    assert any(row["operation"] == "billing" for row in tool.emulated.control("GET", "/ledger"))
    assert tool.problems() == []


def test_results_of_tasks(tool: Tool) -> None:
    server = tool.server(managed=False)
    made = {"changed": True, "server": {"id": str(server), "name": "web", "mode": "live"}}
    assert check(tool.emulated.control, ManagedObjects.of_results([made])) == []
    assert check(tool.emulated.control, ManagedObjects.of_results([{"results": [made]}])) == []
    # A task that failed holds what it says that it had made by then, and nothing else.
    assert check(tool.emulated.control, ManagedObjects.of_results([{**made, "failed": True}])) == []
    assert (
        len(
            check(
                tool.emulated.control, ManagedObjects.of_results([{**made, "failed": True, "changed": False}])
            )
        )
        == 1
    )
    tool.buy(f"/servers/{server}/renew", {"months": 1})
    renewed = {"changed": True, "server_renew": {"id": str(server)}, "charge": {"amount": "5.00"}}
    assert check(tool.emulated.control, ManagedObjects.of_results([made, renewed])) == []
    assert len(check(tool.emulated.control, ManagedObjects.of_results([made]))) == 1
    # The items of a loop do not name the module.
    item = {"changed": True, "server": {"id": str(server), "name": "web"}, "charge": {"amount": "5.00"}}
    looped = {"action": "hosting.cloud.server_renew", "results": [item]}
    assert check(tool.emulated.control, ManagedObjects.of_results([made, looped])) == []
    tool.emulated.api("DELETE", f"/servers/{server}")
    absent = {"changed": True, "server": None, "invocation": {"module_args": {"name": "web"}}}
    assert check(tool.emulated.control, ManagedObjects.of_results([made, renewed, absent])) == []


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
        {
            "ssh_key": None,
            "invocation": {"module_args": {"name": None, "public_key": "ssh-ed25519 AAAA another comment"}},
        },
    ]
    assert [item.id for item in ManagedObjects.of_results([*made, *removed])] == ["20002/30003", "60002"]


@pytest.mark.emulator(clock="manual")
def test_objects_deleted_outside_are_no_problem(emulator: Any) -> None:
    control = Control(emulator.control_url)
    made = control("POST", "/servers", {"name": "given"})
    managed = ManagedObjects.of_stack(
        {
            "deployment": {
                "resources": [
                    {"urn": "a::web", "type": "hosting:index:Server", "id": str(made["id"]), "outputs": {}}
                ]
            }
        }
    )
    assert check(control, managed) == []
    control("DELETE", f"/servers/{made['id']}")
    assert check(control, managed) == []
    control("POST", "/reset", {})
    assert len(check(control, managed)) == 1


def test_an_adopted_key_may_stay_if_the_output_says_so(tool: Tool) -> None:
    tool.emulated.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})
    account = AccountCheck(tool.emulated.control)
    assert account.empty(printed="SSH key me (60002) stays") != []
    assert account.empty(printed="SSH key me (60001) stays: it was not created here") == []
    assert account.empty() == []
