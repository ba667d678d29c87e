"""Actions that are refused."""

from tests.refusals.scenarios import of
from tests.refusals.worlds import CommandLine, World

ACTING = ("ansible", "command line")
NEVER = "2031-01-01"
SOON = "2029-05-16"


@of(*ACTING)
def an_action_on_nothing(w: World) -> None:
    for named in ({"name": "nowhere"}, {"id": "99999"}, {"id": "x"}, {}):
        w.act("server_restart", **named)
    w.act("server_password", id="99999", password_file=str(w.folder / "password"))
    w.act("server_renew", name="nowhere", until=NEVER)
    w.act("domain_renew", name="nowhere.com", until=NEVER)
    w.act("domain_renew", name="a b.com", until=NEVER)
    w.act("invoice_pay", id="99999")
    w.act("invoice_payment_link", id="99999", gateway="card")
    w.act("webhook_test", id="99999")
    w.act("webhook_test", url="https://hooks.example.com:port/x")
    w.act("webhook_redeliver", id="99999")
    w.act("api_key_revoke", key_id="99999")


@of(*ACTING)
def an_action_on_one_of_several(w: World) -> None:
    for _ in range(2):
        w.account.server(name="web")
    w.act("server_restart", name="web")


@of(*ACTING)
def an_action_with_a_test_key(w: World) -> None:
    web, hook = w.account.server(name="web"), w.account.subscribe()["id"]
    w.settings = {"api_key": w.account.test_key}
    w.run()
    w.act("server_restart", id=str(web))
    w.act("webhook_test", id=str(hook))


@of("command line")
def an_action_in_another_mode(w: CommandLine) -> None:
    w.account.server(name="web")
    w.environment = {"HOSTING_MODE": "test"}
    w.act("server_restart", name="web")


@of(*ACTING)
def an_answer_that_is_lost(w: World) -> None:
    w.account.server(name="web")
    w.fault("POST", "/power$", 9, drop="after")
    w.act("server_restart", name="web")
    w.fault("POST", "/reinstall$", 9, drop="after")
    w.reinstall()
    w.control("DELETE", "/faults")
    w.account.advance(3600)
    w.meanwhile(
        "GET", r"/servers/\d+$", lambda: w.control("DELETE", "/servers/20001"), after_write="/reinstall$"
    )
    w.reinstall()
    w.fault("DELETE", "/keys/501$", 9, status=500, code="internal_error")
    w.act("api_key_revoke", key_id="501")


@of(*ACTING)
def a_password_that_is_not_shown(w: World) -> None:
    w.account.server(name="web")
    w.fault("POST", "/reinstall$", patch={"root_password": 7})
    w.reinstall()
    w.account.advance(3600)
    w.meanwhile(
        "GET", r"^/servers/\d+$", lambda: w.shows(r"^/servers/\d+$", id=None), after_write="/reinstall$"
    )
    w.reinstall(name=None, id="20001", erase="20001")


@of(*ACTING)
def a_reinstallation_that_erases_another_disk(w: World) -> None:
    web = w.account.server(name="web")
    w.reinstall(erase="db")
    w.reinstall(os="plan-9")
    w.shows("^/servers", os=None)
    w.reinstall(os=None)
    w.control("PATCH", f"/servers/{web}", {"status": "suspended"})
    w.act("server_restart", name="web")
    w.reinstall()


@of(*ACTING)
def too_many_passwords(w: World) -> None:
    w.account.server(name="web")
    for number in range(7):
        w.run()
        w.act("server_password", name="web", password_file=str(w.folder / str(number)))


@of(*ACTING)
def an_amount_that_is_none(w: World) -> None:
    w.act("balance_topup", amount="much", gateway="card", balance_below="5000")
    w.act("balance_topup", amount="0.01", gateway="pigeon", balance_below="5000")


@of(*ACTING)
def an_invoice_that_cannot_be_paid(w: World) -> None:
    w.account.api("POST", "/balance/topup", {"amount": "25.00", "gateway": "card"})
    id = str(w.account.objects("invoices")[0]["id"])
    w.act("invoice_pay", id=id)
    w.fault("GET", f"^/invoices/{id}$", 9, patch={"status": "cancelled"})
    w.run()
    w.act("invoice_pay", id=id)
    w.act("invoice_payment_link", id=id, gateway="card")


@of(*ACTING)
def an_invoice_beyond_the_limit(w: World) -> None:
    id = str(w.control("POST", "/invoices", {"amount": "3.00"})["id"])
    w.act("invoice_pay", id=id, max_charge="1.00")
    w.act("invoice_pay", id=id, max_charge="much")


@of(*ACTING)
def a_date_that_cannot_be_reached(w: World) -> None:
    w.account.server(name="web")
    w.account.domain("old.com")
    w.act("server_renew", name="web", until="soon")
    w.act("server_renew", name="web", until=NEVER)
    w.act("server_renew", name="web", until="2029-07-01", months=1)
    w.act("server_renew", name="web", until="2029-07-01", hours=1)
    w.act("server_renew", name="web", until="2029-07-01", hours=1, months=1)
    w.act("domain_renew", name="old.com", until="2059-01-01")


@of(*ACTING)
def a_server_without_a_date(w: World) -> None:
    web = w.account.server(name="web")
    w.fault("GET", f"^/servers/{web}$", 9, patch={"billing": {"next_due_at": None}})
    w.act("server_renew", name="web", until=SOON)


@of(*ACTING)
def a_server_that_is_deleted_meanwhile(w: World) -> None:
    web = w.account.server(name="web")
    w.account.fault(
        {"status": 404, "code": "not_found"}, method="GET", path=f"^/servers/{web}$", times=9, after=1
    )
    w.act("server_renew", name="web", until=SOON)


@of(*ACTING)
def a_webhook_that_is_disabled(w: World) -> None:
    hook = w.account.subscribe()["id"]
    w.control("PATCH", f"/webhooks/{hook}", {"active": False})
    w.act("webhook_test", id=str(hook))


@of(*ACTING)
def deliveries_that_stay_dead(w: World) -> None:
    hook, other = w.account.subscribe()["id"], w.account.subscribe()["id"]
    w.account.receiver_status = 500
    w.account.api("POST", f"/webhooks/{hook}/test")
    w.account.advance(7 * 86400)
    dead = w.account.api("GET", f"/webhooks/{hook}/deliveries").json()["data"][0]
    w.act("webhook_redeliver", id=str(other), delivery_id=str(dead["id"]))
    w.fault("POST", "/redeliver$", 9, status=500, code="internal_error")
    w.act("webhook_redeliver", id=str(hook))
    w.control("DELETE", "/faults")
    w.fault("POST", "/redeliver$", 999, status=429, code="rate_limited", retry_after=300)
    w.act("webhook_redeliver", id=str(hook))


@of(*ACTING)
def a_renewal_that_does_not_show(w: World) -> None:
    """It was paid, for one year, and the registrar has not answered: for now, and for longer than a week."""
    id = w.account.domain("old.com")
    w.fault("POST", "/renew$", registrar="pending")
    w.act("domain_renew", name="old.com", until="2030-04-16")
    w.fault("GET", "^/domains/", 99, patch={"registered_at": None})
    w.run()
    w.act("domain_renew", name="old.com", until="2030-04-16", years=2)
    w.control("DELETE", "/faults")
    w.account.advance(8 * 86400)
    w.shows("^/domains", expires_at="2030-04-15T08:00:00Z")
    w.run()
    w.act("domain_renew", id=str(id), until="2030-04-16")


@of(*ACTING)
def a_renewal_that_the_service_takes_back(w: World) -> None:
    w.account.server(name="web")
    w.fault("POST", "/renew$", 99, refunded=502, code="upstream_error")
    w.act("server_renew", name="web", until=SOON)
