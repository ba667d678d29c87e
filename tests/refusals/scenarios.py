"""What people do that is refused: each scenario leads a frontend to one or more refusals."""

from collections.abc import Callable

from tests.emulator.support import PUBLIC_KEY
from tests.refusals.worlds import Ansible, Pulumi, World

ANOTHER_KEY = f"{PUBLIC_KEY[:40]}AAAA{PUBLIC_KEY[44:]}"
BOTH = ("pulumi", "ansible")
ACTING = ("ansible", "command line")
SCENARIOS: list[tuple[str, Callable[..., None]]] = []
"""Frontend and scenario."""


def of(*frontends: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Marks a scenario of these frontends."""

    def added(play: Callable[..., None]) -> Callable[..., None]:
        SCENARIOS.extend((frontend, play) for frontend in frontends)
        return play

    return added


# --- servers: what is declared


@of(*BOTH)
def adopting_what_another_declaration_has(w: World) -> None:
    w.server("a")
    w.server("b", adopt_id=w.ids[0])


@of("pulumi")
def adopting_what_is_replaced(w: Pulumi) -> None:
    web = w.server(password="Aa1-first-of-two", rebuild="replace")
    w.change(web, password="Aa1-second-of-two", adopt_id=w.ids[0])


@of(*BOTH)
def adopting_what_is_not_there(w: World) -> None:
    w.server(adopt_id="99999")
    w.declare("ssh_key", name="me", public_key=PUBLIC_KEY, **adopting(w))
    w.declare("domain", name="new.com", **adopting(w))
    w.declare("webhook_subscription", url=URL, events=["*"], **adopting(w))
    w.server("web")
    w.declare("server_ip", server_id=w.ids[0], adopt_id="99999")


def adopting(w: World) -> dict[str, str]:
    """The options of Ansible take an id there."""
    return {"adopt_id": "99999"} if isinstance(w, Pulumi) else {"id": "99999"}


@of(*BOTH)
def adopting_another_server(w: World) -> None:
    w.account.server(name="big", tariff_id=2)
    w.server(adopt_id=w.ids[0])


@of("pulumi")
def adopting_other_objects(w: Pulumi) -> None:
    key = w.account.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY}).json()["id"]
    w.declare("ssh_key", name="mine", public_key=PUBLIC_KEY, adopt_id=str(key))
    w.declare("ssh_key", name="me", public_key=ANOTHER_KEY, adopt_id=str(key))
    w.declare("domain", name="new.com", adopt_id=str(w.account.domain("old.com")))
    w.server()
    w.declare("server_ip", server_id=w.ids[0])
    address = w.account.objects("addresses")[-1]["id"]
    w.run()
    w.declare("server_ip", "other", server_id=w.ids[0], adopt_id=str(address))


@of(*BOTH)
def values_that_are_wrong(w: World) -> None:
    w.server(adopt_id="x")
    w.server(months=1, hours=1)
    w.server(hours=1)
    w.server(months=1, billing_cycle="hourly")
    w.server(keep_paid="soon")
    w.server(keep_paid="10m")
    w.server(keep_paid="60d")
    w.server(notes="mine [iac2:wns2mcxo]")
    w.server(months=7)
    w.server(keep_paid="0h")
    w.server(hours=1, billing_cycle="monthly")
    w.declare("server", name="web", tariff=[], os="debian-12")
    w.declare("server", name="web", tariff=["VDS-1", "VDS-1"], os="debian-12")
    w.declare("domain", name="bü cher.com")
    w.declare("domain", name="-")
    w.declare("domain", name="com")
    w.declare("domain", name="new.com", years=11)
    w.declare("ptr", server_id="1", address="here", domain="a.example.com")
    w.declare("webhook_subscription", url=URL + "\u200b", events=["*"])


@of("pulumi")
def values_that_ansible_has_choices_for(w: Pulumi) -> None:
    w.server(power="off")
    w.server(ready="ssh", power="stopped")
    w.server(adopt_id=True)


@of(*BOTH)
def a_tariff_that_is_not_there(w: World) -> None:
    w.server(tariff_id=999)
    w.declare("server", name="web", tariff="VDS-99", os="debian-12")


@of("ansible")
def an_object_that_is_declared_in_part(w: World) -> None:
    w.declare("server", name="web")
    w.declare("server", id="99999", name="web")
    w.declare("server", id="web-1", name="web")


@of("ansible")
def another_object_than_the_id(w: Ansible) -> None:
    w.server("a")
    w.server("b")
    w.task("server", id=w.ids[0], name="b")
    w.task("server", id=w.ids[0], name="b", state="absent")


@of("ansible")
def a_change_that_cannot_be_made(w: Ansible) -> None:
    web = w.server()
    w.change(web, tariff_id=2)
    w.change(web, tariff_id=1, os="ubuntu-24.04")
    w.control("PATCH", f"/servers/{w.ids[0]}", {"name": "Web Server"})
    w.run()
    w.task("server", id=w.ids[0], name="Web Server 2")


@of("pulumi")
def a_change_that_is_forbidden(w: Pulumi) -> None:
    web = w.server(rebuild="forbid")
    w.change(web, os="ubuntu-24.04")


@of("ansible")
def a_wrong_value_of_an_object_that_is_only_planned(w: Ansible) -> None:
    w.settings = {"check_mode": True}
    w.run()
    w.task("server_ip", server_id="", order_attempt=-1)
    w.task("ptr", server_id="", domain="a..b")


@of(*BOTH)
def more_than_the_limit(w: World) -> None:
    w.settings = {"maxCharge" if isinstance(w, Pulumi) else "max_charge": "1.00"}
    w.run()
    w.server()


@of("ansible")
def a_limit_that_is_none(w: Ansible) -> None:
    w.task("server", name="web", tariff_id=1, os="debian-12", max_charge="much")


# --- keys


@of(*BOTH)
def a_key_that_may_not(w: World) -> None:
    w.server()
    for scopes in (
        ["servers:read"],
        ["servers:read", "servers:order"],
        ["servers:read", "servers:order", "balance:read", "invoices:read"],
    ):
        key = w.account.new_key(scopes=scopes)
        w.settings = {"apiKey" if isinstance(w, Pulumi) else "api_key": key}
        w.run()
        w.server("new", notes="mine")
        w.server("newer")


@of("pulumi")
def a_key_of_the_other_mode(w: Pulumi) -> None:
    web = w.server()
    w.settings = {"apiKey": w.account.test_key}
    w.run()
    simulated = w.server("simulated")
    w.run()
    w.remove(web)
    w.settings = {}
    w.run()
    w.remove(simulated)
    w.settings = {"mode": "test"}
    w.run()
    w.server("new")


@of("ansible")
def a_key_of_the_other_mode_in_a_playbook(w: Ansible) -> None:
    web = w.server()
    w.settings = {"api_key": w.account.test_key}
    w.run()
    w.remove(web)
    w.task("server", name="simulated", tariff_id=1, os="debian-12")
    w.settings = {}
    w.run()
    simulated = w.account.objects("servers")[-1]["id"]
    w.task("server", id=str(simulated), state="absent")
    w.settings = {"api_key": w.account.test_key}
    w.run()
    w.task("domain_renew", name="old.com", until="2031-01-01")
    w.settings = {"mode": "test"}
    w.run()
    w.server("new")


# --- orders


@of(*BOTH)
def another_server_of_the_name(w: World) -> None:
    for _ in range(2):
        w.account.server(name="web")
    w.server()
    w.remove_named("web")


@of(*BOTH)
def an_order_that_does_not_end(w: World) -> None:
    w.fault("POST", "^/servers$", panel_timeout="active")
    w.control("PATCH", "/service", {"readings": {}})
    w.server(wait_timeout=1)


@of(*BOTH)
def an_order_that_failed(w: World) -> None:
    w.fault("POST", "^/servers$", panel_timeout="failed")
    w.server()


@of(*BOTH)
def tariffs_that_were_all_sold(w: World) -> None:
    w.fault("POST", "^/servers$", 9, status=409, code="no_capacity")
    w.declare("server", name="web", tariff=["VDS-1", "VDS-2"], os="debian-12")


# --- other objects

URL = "https://hooks.example.com/x"


@of(*BOTH)
def reverse_dns_of_nothing(w: World) -> None:
    w.declare("ptr", server_id="99999", domain="a.example.com")
    w.server()
    w.declare("ptr", server_id=w.ids[0], address="203.0.113.250", domain="a.example.com")


@of(*BOTH)
def a_key_under_another_name(w: World) -> None:
    w.account.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})
    w.declare("ssh_key", name="mine", public_key=PUBLIC_KEY)
