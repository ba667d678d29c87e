"""Orders and purchases, and their outcomes: what is refused for it."""

from tests.emulator.support import PUBLIC_KEY
from tests.refusals.scenarios import BOTH, URL, of
from tests.refusals.worlds import DAY, Ansible, Pulumi, World
from tests.support.account import Account


@of("pulumi")
def two_servers_with_one_tag(w: Pulumi) -> None:
    w.server()
    tag = w.account.api("GET", f"/servers/{w.ids[0]}").json()["notes"]
    other = w.account.server(name="web")
    w.control("PATCH", f"/servers/{other}", {"notes": tag})
    w.run()
    w.server()


@of("pulumi")
def a_server_of_which_the_state_was_lost(w: Pulumi) -> None:
    w.server()
    (id,) = w.ids
    for drift in ({"name": "other"}, {"name": "web", "os": "ubuntu-24.04"}, {"os": "debian-12"}):
        w.control("PATCH", f"/servers/{id}", drift)
        w.run()
        if drift == {"os": "debian-12"}:
            w.account.advance(8 * DAY)
            w.elsewhere()
        w.server()


@of(*BOTH)
def a_server_that_was_renamed(w: World) -> None:
    w.server()
    (id,) = w.ids
    w.control("PATCH", f"/servers/{id}", {"name": "other"})
    w.run()
    w.server()
    w.remove_named("web")
    w.control("PATCH", f"/servers/{id}", {"notes": ""})
    w.elsewhere()
    w.run()
    w.server()


@of("ansible")
def an_object_of_a_server_that_was_renamed(w: Ansible) -> None:
    w.server()
    w.control("PATCH", f"/servers/{w.ids[0]}", {"name": "other"})
    w.run()
    w.task("server_ip", server_name="web")
    w.task("server_ip", server_name="nowhere")


@of("pulumi")
def another_run_at_the_same_moment(w: Pulumi) -> None:
    def order() -> None:
        w.elsewhere()
        other = Pulumi(w.account)
        other.server(os="ubuntu-24.04")

    w.meanwhile("POST", "/servers$", order)
    w.server()


@of(*BOTH)
def an_order_that_is_not_carried_out(w: World) -> None:
    w.account = Account(provisioning_delay=30 * DAY)
    w.fault("POST", "^/servers$", 9, panel_timeout="active")
    w.run()
    web = w.server()
    w.run()
    w.server()
    w.remove(web)
    w.account.advance(9 * DAY)
    w.run()
    w.server()
    w.remove_named("web")


@of(*BOTH)
def an_order_whose_server_is_deleted(w: World) -> None:
    def delete() -> None:
        for id in w.ids:
            w.control("DELETE", f"/servers/{id}")

    w.account = Account(provisioning_delay=60)
    w.fault("POST", "^/servers$", panel_timeout="active")
    w.meanwhile("GET", r"/servers/\d+$", delete)
    w.run()
    w.server()


@of(*BOTH)
def an_order_that_the_service_does_not_carry_out(w: World) -> None:
    for action in (
        {"refunded": 502, "code": "upstream_error"},
        {"status": 502, "code": "upstream_error"},
        {"drop": "after"},
    ):
        w.control("DELETE", "/faults")
        w.fault("POST", "^/servers$", 99, **action)
        w.run()
        w.server(f"web-{len(w.lines)}")


@of(*BOTH)
def a_price_that_is_none(w: World) -> None:
    w.settings = {"budget": "10.00/month"}
    w.run()
    w.fault("GET", "/quote$", 99, status=404, code="not_found")
    w.server()
    w.control("DELETE", "/faults")
    w.run()
    w.server("a")
    w.server("b")
    w.server("c")
    w.run()
    w.fault("GET", "/quote$", 99, patch={"total": "-5.00"})
    w.server("d")


@of("pulumi")
def a_budget_that_another_run_spends(w: Pulumi) -> None:
    def order() -> None:
        w.elsewhere()
        w.account.server(name="other", tariff_id=2)

    w.settings = {"budget": "12.00/month"}
    w.run()
    w.between = order
    w.server()


# --- addresses


@of(*BOTH)
def an_address_of_no_server(w: World) -> None:
    w.declare("server_ip", server_id="99999")
    w.declare("server_ip", server_id="99999", adopt_id="1")
    w.declare("server_ip", "x", server_id="web-1")


@of(*BOTH)
def an_address_of_unknown_origin(w: World) -> None:
    w.server()
    w.account.api("POST", f"/servers/{w.ids[0]}/ips")
    w.declare("server_ip", server_id=w.ids[0])
    w.account.advance(8 * DAY)
    w.run()
    w.declare("server_ip", "other", server_id=w.ids[0])


@of(*BOTH)
def an_address_that_is_counted_and_not_shown(w: World) -> None:
    w.server()
    w.fault("GET", "/ips/quote$", 99, patch={"extra_ips": 1})
    w.declare("server_ip", server_id=w.ids[0])


@of("pulumi")
def an_address_of_an_interrupted_run(w: Pulumi) -> None:
    w.server()
    w.fault("POST", "/ips$", 99, drop="after")
    w.declare("server_ip", server_id=w.ids[0])
    w.control("DELETE", "/faults")
    w.account.advance(8 * DAY)
    w.run()
    w.declare("server_ip", server_id=w.ids[0])


@of(*BOTH)
def an_address_that_does_not_come(w: World) -> None:
    w.account = Account(ip_delay=30 * DAY)
    w.run()
    w.server()
    ip = w.declare("server_ip", server_id=w.ids[0])
    w.account.advance(9 * DAY)
    w.run()
    w.declare("server_ip", server_id=w.ids[0])
    w.refresh(ip)


@of("pulumi")
def an_address_under_way_that_is_taken_back(w: Pulumi) -> None:
    w.account = Account(ip_delay=30 * DAY)
    w.run()
    w.server()
    ip = w.declare("server_ip", server_id=w.ids[0])
    w.remove(ip)
    w.imported("server_ip", f"pending:{w.ids[0]}")
    w.imported("server_ip", "x")
    w.account.advance(9 * DAY)
    w.run()
    w.remove(ip)
    w.control("DELETE", f"/servers/{w.ids[0]}")
    w.run()
    w.change(ip)


@of(*BOTH)
def an_address_of_a_server_that_is_deleted(w: World) -> None:
    def delete() -> None:
        for id in w.ids:
            w.control("DELETE", f"/servers/{id}")

    w.account = Account(ip_delay=3600)
    w.run()
    w.server()
    w.meanwhile("GET", r"/servers/\d+$", delete, after_write="/ips$")
    w.declare("server_ip", server_id=w.ids[0])


@of("ansible")
def an_address_that_came_with_the_server(w: Ansible) -> None:
    w.server()
    primary = w.account.objects("addresses")[0]
    w.task("server_ip", id=f"{w.ids[0]}/{primary['id']}", state="absent")
    w.task("server_ip", server_id=w.ids[0], address=primary["address"], state="absent")
    w.task("server_ip", server_id=w.ids[0], address="203.0.113.250")
    w.task("server_ip", server_id=w.ids[0], position=0)
    w.task("server_ip", server_id=w.ids[0], position=3)
    w.task("server_ip", server_id=w.ids[0], address="here")


@of("pulumi")
def an_address_that_is_imported_and_came_with_the_server(w: Pulumi) -> None:
    w.server()
    primary = w.account.objects("addresses")[0]
    ip = w.imported("server_ip", f"{w.ids[0]}/{primary['id']}")
    w.remove(ip)


# --- domains


@of("pulumi")
def a_domain_that_is_there(w: Pulumi) -> None:
    w.account.domain("shop.com")
    w.declare("domain", name="shop.com")
    w.account.advance(8 * DAY)
    w.run()
    w.declare("domain", name="shop.com")


@of(*BOTH)
def a_domain_that_goes_on_renewing(w: World) -> None:
    shop = w.declare("domain", name="shop.com")
    id = w.account.objects("domains")[0]["id"]
    w.control("PATCH", f"/domains/{id}", {"auto_renew": True})
    w.run()
    w.fault("PATCH", "^/domains/", patch={"auto_renew": True})
    w.remove(shop)
    w.control("PATCH", f"/domains/{id}", {"status": "pending", "auto_renew": True})
    w.run()
    w.remove(shop)


@of("pulumi")
def a_domain_that_was_ordered_again(w: Pulumi) -> None:
    shop = w.declare("domain", name="shop.com")
    w.control("DELETE", f"/domains/{w.account.objects('domains')[0]['id']}")
    w.run()
    w.change(shop, auto_renew=True)
    w.account.domain("shop.com")
    w.run()
    w.remove(shop)


@of("pulumi")
def a_domain_under_way(w: Pulumi) -> None:
    w.fault("POST", "^/domains$", registrar="pending")
    shop = w.declare("domain", name="shop.com")
    (row,) = w.account.objects("domains")
    w.control("DELETE", f"/domains/{row['id']}")
    assert shop.entry is not None
    shop.entry.id = "shop.com"
    w.run()
    w.remove(shop)
    w.account.advance(9 * DAY)
    w.run()
    w.change(shop, auto_renew=True)
    w.remove(shop)
    w.fault("POST", "^/domains$", registrar="pending")
    kept = w.declare("domain", "kept", name="kept.com")
    w.control("PATCH", f"/domains/{w.account.objects('domains')[-1]['id']}", {"status": "cancelled"})
    w.run()
    w.remove(kept)


# --- what another one has by now


@of("pulumi")
def an_object_that_another_one_has(w: Pulumi) -> None:
    web = w.server()
    (id,) = w.ids
    w.control("PATCH", f"/servers/{id}", {"notes": "[iac2:wns2mcxo]"})
    w.run()
    w.change(web, notes="mine")
    w.remove(web)
    w.refresh(web)


@of("pulumi")
def a_state_of_another_object(w: Pulumi) -> None:
    web = w.server()
    key = w.declare("ssh_key", name="me", public_key=PUBLIC_KEY)
    hook = w.declare("webhook_subscription", url=URL, events=["*"])
    shop = w.declare("domain", name="shop.com")
    other = {"createdAt": "2020-01-01T00:00:00Z", "fingerprint": "SHA256:other", "ownershipTag": None}
    for what in (web, key, hook, shop):
        assert what.entry is not None
        what.entry.outputs |= {name: value for name, value in other.items() if name in what.entry.outputs}
    w.control("PATCH", f"/servers/{w.ids[0]}", {"notes": ""})
    w.control("PATCH", f"/webhooks/{w.account.objects('subscriptions')[0]['id']}", {"description": ""})
    w.run()
    for what in (web, key, hook, shop):
        w.refresh(what)
        w.remove(what)


@of("pulumi")
def an_object_that_stands_elsewhere(w: Pulumi) -> None:
    web = w.server()
    notes = w.account.objects("servers")[0]["notes"]
    hook = w.declare("webhook_subscription", url=URL, events=["*"])
    old = w.account.objects("subscriptions")[0]
    w.control("DELETE", f"/servers/{w.ids[0]}")
    other = w.account.server(name="web")
    w.control("PATCH", f"/servers/{other}", {"notes": notes})
    w.control("DELETE", f"/webhooks/{old['id']}")
    w.account.api("POST", "/webhooks", {"url": URL, "events": ["*"], "description": old["description"]})
    w.run()
    w.remove(web)
    w.remove(hook)
    w.account.advance(8 * DAY)
    w.run()
    w.declare("webhook_subscription", url=URL, events=["*"])


@of(*BOTH)
def a_subscription_that_two_runs_make(w: World) -> None:
    def make() -> None:
        w.elsewhere()
        type(w)(w.account).declare("webhook_subscription", url=URL, events=["*"])

    w.meanwhile("POST", "/webhooks$", make)
    w.declare("webhook_subscription", url=URL, events=["*"])


@of("ansible")
def a_name_that_several_have(w: Ansible) -> None:
    for _ in range(2):
        w.account.api("POST", "/webhooks", {"url": URL, "events": ["*"]})
    w.task("webhook_subscription", url=URL, events=["server.created"])
    w.account.variant(duplicate_ssh_key="second")
    for _ in range(2):
        w.account.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})
    w.task("ssh_key", name="me", public_key=f"{PUBLIC_KEY[:40]}AAAA{PUBLIC_KEY[44:]}")


@of(*BOTH)
def a_key_that_another_run_adds(w: World) -> None:
    def add() -> None:
        w.account.api("POST", "/ssh-keys", {"name": "me", "public_key": PUBLIC_KEY})

    w.on_creation("/ssh-keys$", add)
    w.declare("ssh_key", name="mine", public_key=PUBLIC_KEY)


@of(*BOTH)
def a_tariff_that_has_the_name_of_another(w: World) -> None:
    w.shows("/tariffs$", name="VDS-1")
    w.declare("server", name="web", tariff="VDS-1", os="debian-12")


@of(*BOTH)
def a_server_that_is_suspended(w: World) -> None:
    web = w.server()
    w.control("PATCH", f"/servers/{w.ids[0]}", {"status": "suspended"})
    w.run()
    w.refresh(web)
    w.change(web, **({"power": "stopped"} if isinstance(w, Pulumi) else {"state": "stopped"}))


@of("pulumi")
def a_reinstallation_whose_answer_is_lost(w: Pulumi) -> None:
    web = w.server(rebuild="reinstall")
    w.fault("POST", "/reinstall$", drop="after")
    w.change(web, os="ubuntu-24.04")
    w.control("DELETE", "/faults")
    w.meanwhile(
        "GET",
        r"/servers/\d+$",
        lambda: w.control("DELETE", f"/servers/{w.ids[0]}"),
        after_write="/reinstall$",
    )
    w.run()
    w.change(web, os="ubuntu-22.04")


@of("pulumi")
def a_difference_that_is_forbidden(w: Pulumi) -> None:
    web = w.server(rebuild="forbid")
    w.control("PATCH", f"/servers/{w.ids[0]}", {"os": "ubuntu-24.04"})
    w.run()
    w.refresh(web)
    w.change(web)


@of("pulumi")
def an_address_of_a_server_that_is_deleted_after_the_preview(w: Pulumi) -> None:
    w.server()
    (id,) = w.ids
    w.between = lambda: w.control("DELETE", f"/servers/{id}")
    w.declare("server_ip", server_id=id)


@of("ansible")
def two_servers_of_the_name_that_appear_during_the_order(w: Ansible) -> None:
    def order() -> None:
        for _ in range(2):
            w.account.server(name="web")
        w.fault("POST", "^/servers$", status=409, code="operation_in_progress")

    w.meanwhile("POST", "^/servers$", order)
    w.server()


@of("pulumi")
def an_address_record_of_a_server_that_is_deleted(w: Pulumi) -> None:
    w.server()
    (id,) = w.ids

    w.between = lambda: w.control("DELETE", f"/servers/{id}")
    w.declare("ptr", server_id=id, domain="a.example.com")
    w.server("db")
    (id,) = w.ids
    shown = w.account.api("GET", f"/servers/{id}").json()["ip"]
    w.run()
    w.between = lambda: w.shows("/ips$", address="203.0.113.250")
    w.declare("ptr", "other", server_id=id, address=shown, domain="a.example.com")


@of("pulumi")
def a_key_that_may_less_than_that_of_the_preview(w: Pulumi) -> None:
    def take_another_key() -> None:
        w.settings = {"apiKey": w.account.new_key(scopes=["servers:read", "servers:order", "invoices:read"])}
        w.run()

    w.between = take_another_key
    w.server(notes="mine")


@of(*BOTH)
def a_renewal_that_the_key_may_not_pay(w: World) -> None:
    web = w.server(auto_renew=False, keep_paid="7d")
    w.account.advance(25 * DAY)
    key = w.account.new_key(scopes=["servers:read", "servers:manage", "invoices:read"])
    w.settings = {"apiKey" if isinstance(w, Pulumi) else "api_key": key}
    w.run()
    w.refresh(web)
    w.change(web, notes="mine")
