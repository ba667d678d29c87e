"""Domains: availability, registration, renewal, transfer, name servers, privacy."""

from typing import Any

from pulumi_hosting.emulator import catalog, dialects, money, periods, registrar, views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.validation import invalid_period
from pulumi_hosting.emulator.wire import Answer, Refusal, invalid, stamp
from pulumi_hosting.emulator.wire import money as text
from pulumi_hosting.emulator.world import Domain


def check_domain_availability(call: Call) -> Answer:
    name = registrar.look_up(call.query.name)
    held = registrar.owned(call.world, name.text) or registrar.renewable(call.world, name.text, call.account.id)
    reason = name.problem or ("taken" if held else None)
    zone = name.zone
    return Answer(
        200,
        {
            "name": name.text,
            "available": reason is None,
            "reason": reason,
            "premium": reason == "premium",
            "price_register": text(zone.price_register) if zone else None,
            "price_renew": text(zone.price_renew) if zone else None,
            "currency": call.account.currency,
            "min_years": zone.min_years if zone else 1,
        },
    )


def list_domains(call: Call) -> Answer:
    status = call.query.status
    rows = (row for row in call.world.newest(Domain, call.account.id) if status is None or views.domain_status(row, call.world) == status)
    return call.page(rows, lambda row: views.domain(row, call.world))


def get_domain(call: Call) -> Answer:
    return Answer(200, views.domain(call.domain(), call.world))


def _nameservers(call: Call, given: list[str] | None) -> list[str]:
    if given is None:
        return list(catalog.NAMESERVERS)
    if len(given) not in dialects.NAMESERVER_COUNT(call.dialect):
        raise invalid(nameservers="too_many")
    return [host.rstrip(".").lower() for host in given]


def _check_free(call: Call, name: str) -> None:
    if registrar.renewable(call.world, name, call.account.id) is not None:
        raise Refusal("domain_exists", "the domain has expired and can be renewed")
    owner = registrar.owned(call.world, name)
    if owner is not None:
        raise Refusal("domain_exists" if owner.account_id == call.account.id else "domain_taken")


def register_domain(call: Call) -> Answer:
    world, body, account = call.world, call.body, call.account
    if body.auto_renew is not None and not dialects.AUTO_RENEW_AT_REGISTRATION(call.dialect):
        raise invalid(auto_renew="unknown")
    name, zone = registrar.registrable(body.name)
    nameservers = _nameservers(call, body.nameservers)
    years = body.years or max(1, zone.min_years)
    if not zone.min_years <= years <= zone.max_years:
        raise invalid_period("years")
    privacy = body.privacy if body.privacy is not None else dialects.PRIVACY_DEFAULT(call.dialect) and zone.privacy
    registrar.check_privacy(zone, privacy)
    _check_free(call, name)
    if registrar.look_up(name).problem is not None:
        raise Refusal("domain_taken", "the name cannot be registered")
    if body.promo_code is not None and money.promo_problem(account, body.promo_code) is not None:
        raise invalid(promo_code="invalid")
    promo = [("promo", catalog.PROMO_CODES[body.promo_code.upper()].percent)] if body.promo_code else []
    price = money.discounted(zone.price_register * years, promo)
    pending = call.fault.get("registrar") == "pending"
    domain = world.make(
        Domain,
        account_id=account.id,
        name=name,
        tld=zone.tld,
        status="pending",
        created_at=call.now,
        years=years,
        auto_renew=bool(body.auto_renew),
        privacy=privacy,
        nameservers=nameservers,
    )
    call.purchase("domain_registration", price.total, f"Domain {name}", domain_id=domain.id)
    if body.promo_code is not None and not call.fake:
        account.promo_used = [*account.promo_used, body.promo_code.upper()]
    call.keep(domain)
    if not call.fake:
        # An expired name is free for everybody else; its registration ends the old one, which can be renewed no more.
        registrar.end_others(world, domain)
    if pending and not call.fake:
        world.later(call.now + registrar.SYNC_SECONDS, "sync_domain", domain.id)
    elif call.fake:
        domain.status, domain.expires_at = "active", periods.months_after(call.now, 12 * years)
    else:
        registrar.activate(world, domain, call.now)
    view = {
        "status": "pending" if pending else "registered",
        "domain": _shown(call, domain, dialects.REGISTERED_DOMAIN(call.dialect)),
        # Null while there is no record to read: pending, and in a simulation always.
        "domain_id": None if pending or call.fake else domain.id,
        "zone": zone.tld,
        "years": years,
        "charged": text(price.total),
        "discount": text(price.base - price.total),
        "promo_code": body.promo_code,
        "currency": account.currency,
        "expires_at": None if pending else stamp(domain.expires_at),
        "message": "The registrar has not confirmed yet." if pending else None,
        "balance_after": text(call.balance_after(price.total)),
    }
    return Answer(202 if pending else 201, view)


def _shown(call: Call, domain: Domain, how: str) -> Any:
    if how == "name":
        return domain.name
    # A domain that was only simulated, or is not known to the registrar yet, has no record to read.
    known = domain.status != "pending" and domain.id in call.world.domains
    return views.domain(domain, call.world) if known else {**views.domain(domain, call.world), "id": None}


def set_domain_nameservers(call: Call) -> Answer:
    domain = call.domain(change=True)
    nameservers = _nameservers(call, call.body.nameservers)
    _check_settled(domain)
    row = call.draft(domain)
    row.nameservers = nameservers
    return Answer(200, views.domain(row, call.world))


def _check_settled(domain: Domain) -> None:
    if domain.status in ("pending", "transfer_pending", "cancelled"):
        raise Refusal("conflict", f"the domain is {domain.status}", details={"status": domain.status})


def update_domain(call: Call) -> Answer:
    body, domain = call.body, call.domain(change=True)
    for name in body.model_fields_set:
        if getattr(body, name) is None:
            raise invalid(**{name: "wrong_type"})
    _check_settled(domain)
    if body.privacy is not None:
        registrar.check_privacy(catalog.ZONES[domain.tld], body.privacy)
    row = call.draft(domain)
    row.privacy = body.privacy if body.privacy is not None else row.privacy
    row.auto_renew = body.auto_renew if body.auto_renew is not None else row.auto_renew
    return Answer(200, views.domain(row, call.world))


def renew_domain(call: Call) -> Answer:
    domain = call.domain(change=True)
    years: int = call.body.years
    _check_settled(domain)
    zone = catalog.ZONES[domain.tld]
    until = registrar.renewed_until(domain, years, call.now)
    if until > periods.months_after(call.now, 12 * registrar.MOST_YEARS):
        raise Refusal("upstream_rejected", f"the registrar allows at most {registrar.MOST_YEARS} years ahead")
    amount = zone.price_renew * years
    call.purchase("domain_renewal", amount, f"Renewal of {domain.name}", domain_id=domain.id)
    row = call.draft(domain)
    pending = call.fault.get("registrar") == "pending"
    if pending:
        if not call.fake:
            call.world.later(call.now + registrar.SYNC_SECONDS, "extend_domain", domain.id, str(years))
    elif call.fake:
        row.expires_at = until
        row.years += years
    else:
        registrar.extend(call.world, domain, years, call.now)
    how = dialects.RENEWED_DOMAIN(call.dialect)
    status, word = dialects.PENDING_RENEWAL(call.dialect) if pending else (200, "renewed")
    return Answer(
        status,
        {
            "status": word,
            "domain": row.name if how == "name" else views.domain(row, call.world),
            "domain_id": row.id,
            "years": years,
            "total_years": row.years,
            "charged": text(amount),
            "balance_after": text(call.balance_after(amount)),
            "currency": call.account.currency,
            "expires_at": None if pending else stamp(row.expires_at),
            "message": "The registrar accepted; the new date is not visible yet." if pending else None,
        },
    )


def transfer_domain(call: Call) -> Answer:
    world, body, account = call.world, call.body, call.account
    name, zone = registrar.registrable(body.name)
    if zone.price_transfer is None:
        raise Refusal("upstream_rejected", f"transfers of .{zone.tld} are not offered")
    nameservers = _nameservers(call, body.nameservers)
    privacy = body.privacy if body.privacy is not None else dialects.PRIVACY_DEFAULT(call.dialect) and zone.privacy
    registrar.check_privacy(zone, privacy)
    # A domain that is not yet, or no longer, ours can be moved here; one that is, or is on its way, cannot.
    if any(row.name == name and row.account_id == account.id and row.status != "cancelled" for row in world.domains.values()):
        raise Refusal("domain_exists")
    if body.auth_code.reveal().startswith("WRONG-"):
        raise Refusal("upstream_rejected", "the present registrar refused the auth code")
    domain = world.make(
        Domain,
        account_id=account.id,
        name=name,
        tld=zone.tld,
        status="transfer_pending",
        created_at=call.now,
        years=1,
        auto_renew=bool(body.auto_renew),
        privacy=privacy,
        nameservers=nameservers,
    )
    call.purchase("domain_transfer", zone.price_transfer, f"Transfer of {name}", domain_id=domain.id)
    if not call.fake:
        world.add(domain)
        world.later(call.now + registrar.TRANSFER_SECONDS, "sync_domain", domain.id)
    return Answer(
        202,
        {
            "status": dialects.TRANSFER_STATUS(call.dialect),
            "domain": name,
            "domain_id": None if call.fake else domain.id,
            "charged": text(zone.price_transfer),
            "currency": account.currency,
            "message": None,
        },
    )
