"""Domains: a simulated registration and transfer; with ``--domain``, one that stays."""

from decimal import Decimal
from typing import Any

from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.reads import ABSENT
from pulumi_hosting.certify.sandbox import balance, need_test_key
from pulumi_hosting.certify.session import LIVE, TEST, Exchanges, Skip
from pulumi_hosting.certify.staging import StagingAccount, need_live_key


def simulated_domain(run: Exchanges) -> None:
    need_test_key(run)
    before = balance(run)
    run.part("domains.register domains.transfer", _simulated_domain, run)
    after = run.get("/balance")
    words = f"the balance was {before}, and is {after.body['balance']} after a simulated registration"
    run.expect("sandbox.nothing-charged", Decimal(after.body["balance"]) == before, words, after)


def _simulated_domain(run: Exchanges) -> None:
    zones = run.get("/catalog/zones").items
    if not zones:
        return
    zone = zones[0]
    name = f"certify-{run.id}.{zone['tld'].strip('.')}"
    body = {"name": name}
    answer = run.call("POST", "/domains", TEST, json_body=body, step="sandbox domain")
    if answer.is_(402):
        run.skip("the balance of the account does not cover a simulated registration", "domains.register")
        return
    registered(run, answer, zone)
    again = run.call("POST", "/domains", TEST, json_body=body, step="sandbox domain", stored=True)
    run.same("idempotency.replay", "a repeated registration", again.data, answer.data, again)
    listed = run.get("/domains?limit=100")
    names = [entry.get("name") for entry in listed.items]
    run.expect("sandbox.nothing-charged", name not in names, "a simulated domain is listed", listed)
    if zone.get("transfer_supported"):
        codeless, step = {"name": f"transfer-{name}"}, "sandbox bad transfer"
        run.refused("domains.transfer", 400, "POST /domains/transfers", json_body=codeless, step=step)
        transfer = {"name": f"transfer-{name}", "auth_code": "certify-Code-1"}
        moved = run.call("POST", "/domains/transfers", TEST, json_body=transfer, step="sandbox transfer")
        if not moved.is_(402):
            run.status("domains.transfer", moved, 200, 201, 202)
            words = ("transfer_pending", "pending_transfer", "pending")
            holds = moved.body.get("status") in words and s.fits(moved.body.get("charged"), "money")
            run.expect("domains.transfer", holds, f"status is {moved.body.get('status')}", moved)
            run.has("domains.transfer", moved, charged=zone.get("price_transfer"))


def registered(run: Exchanges, answer: HttpAnswer, zone: dict[str, Any]) -> None:
    run.status("domains.register", answer, 201, 202)
    run.has("domains.register", answer, status="registered" if answer.is_(201) else "pending")
    has = "domain" in answer.body and s.fits(answer.body.get("charged"), "money")
    run.expect("domains.register", has, "domain or charged is missing", answer)
    run.has("money.domain", answer, charged=zone.get("price_register"))


def domain(run: Exchanges) -> None:
    account = need_live_key(run)
    name = run.settings.domain
    if not name:
        raise Skip("no name was given (--domain)")
    tld = name.partition(".")[2]
    zones = [zone for zone in run.get("/catalog/zones", LIVE).items if zone["tld"].strip(".") == tld]
    if not zones:
        raise Skip(f"the catalog has no zone {tld}")
    price = Decimal(zones[0]["price_register"])
    run.may_spend(price, "a registration")
    before = account.balance
    body = {"name": name, "years": 1, "privacy": False}
    answer = account.call("POST", "/domains", json_body=body, step=f"domain {name}")
    registered(run, answer, zones[0])
    if not answer.ok:
        return
    run.left_behind(f"domain {name}")
    after = account.balance
    account.ledger("a registration", "debit", account.charged("a registration", before, answer, after))
    account.repeated("registration", answer, after, "POST", "/domains", json_body=body, step=f"domain {name}")
    second = account.call("POST", "/domains", json_body=body, step=f"second domain {name}")
    words = f"answered {second.short}, not domain_exists"
    run.expect("domains.exists", second.is_(409, "domain_exists"), words, second)
    availability = account.get(f"/domains/availability?name={name}")
    run.has("domains.taken", availability, available=False, reason="taken")
    if run.hooks is not None and answer.is_(201):
        run.hooks.expect("domain.registered", s.DOMAIN)
    listed = account.get("/domains?limit=100")
    found = [entry for entry in listed.items if entry.get("name") == name]
    run.expect("domains.list", found, "the registered domain is not listed", listed)
    if found:
        run.part("domains.", _one_domain, account, found[0]["id"], zones[0])


def _one_domain(account: StagingAccount, id: int, zone: dict[str, Any]) -> None:
    run, path = account.run, f"/domains/{id}"
    read = account.until(path, lambda read: read.body.get("status") != "pending", pause=10)
    if read.body.get("status") == "pending":
        raise Skip("the registration stays pending")
    run.status("domains.read", read, 200) and run.shape("domains.shape", read.data, s.DOMAIN, read)
    run.has("domains.defaults", read, auto_renew=False)
    servers = ["ns1.certify.example.org", "ns2.certify.example.org"]
    changed = account.call("PUT", f"{path}/nameservers", json_body={"nameservers": servers})
    run.status("domains.nameservers", changed, 200)
    for answer in (changed, account.get(path)):
        now = sorted(answer.body.get("nameservers") or [])
        run.same("domains.nameservers", "the name servers", now, servers, answer)
    for bad in (servers[:1], [servers[0]] * 2, [f"ns{n}.certify.example.org" for n in range(5)]):
        answer = account.call("PUT", f"{path}/nameservers", json_body={"nameservers": bad})
        run.status("domains.nameserver-bounds", answer, 400)
    names = ["auto_renew", *(["privacy"] if zone.get("privacy_supported") else [])]
    for name, wanted in ((name, wanted) for wanted in (True, False) for name in names):
        patched = account.call("PATCH", path, json_body={name: wanted})
        run.status("domains.patch", patched, 200)
        for answer in (patched, account.get(path)):
            run.same("domains.patch", name, answer.body.get(name), wanted, answer)
    for bad_years in (0, 11):
        step = f"domain {id} {bad_years} years"
        answer = account.call("POST", f"{path}/renew", json_body={"years": bad_years}, step=step)
        run.status("domains.renew-bounds", answer, 400)
    price, due = Decimal(read.body["price_renew"]), read.body.get("expires_at")
    run.may_spend(price, "the renewal of a domain")
    before = account.balance
    answer = account.call("POST", f"{path}/renew", json_body={"years": 1}, step=f"domain {id} renewal")
    if answer.is_(409, "conflict"):
        run.reading("early_renewal", "last_day")
        return
    run.status("domains.renew", answer, 200, 202)
    status = answer.body.get("status")
    run.expect(
        "domains.renew", status in ("renewed", "pending_sync", "pending"), f"status is {status}", answer
    )
    amount = account.charged("the renewal of a domain", before, answer, account.balance)
    run.same("money.domain", "charged for a renewal", amount, price, answer)
    if status == "renewed":
        later = account.get(path)
        until = later.body.get("expires_at")
        run.expect("domains.renew", str(until) > str(due), f"expires_at was {due} and is {until}", later)
    absent = account.call("POST", f"/domains/{ABSENT}/renew", json_body={"years": 1}, step="no domain")
    run.status("errors.not-found", absent, 404, code="not_found")
