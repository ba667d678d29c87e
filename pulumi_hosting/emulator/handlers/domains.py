"""Domains: availability, registration, renewal, transfer, name servers, privacy."""

from typing import Any

from pulumi_hosting.emulator import dialects, periods, price_list, pricing, registrar, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import format_money, format_timestamp
from pulumi_hosting.emulator.messages import ApiError, Response, invalid
from pulumi_hosting.emulator.rows import Domain, Invoice
from pulumi_hosting.emulator.validation import invalid_period


def check_domain_availability(call: Call) -> Response:
    name = registrar.look_up(call.query.name)
    held = registrar.find_active(call.store, name.text) or registrar.renewable(
        call.store, name.text, call.account.id
    )
    reason = name.problem or ("taken" if held else None)
    zone = name.zone
    return Response(
        200,
        {
            "name": name.text,
            "available": reason is None,
            "reason": reason,
            "premium": reason == "premium",
            "price_register": format_money(zone.price_register) if zone else None,
            "price_renew": format_money(zone.price_renew) if zone else None,
            "currency": call.account.currency,
            "min_years": zone.min_years if zone else 1,
        },
    )


def list_domains(call: Call) -> Response:
    status = call.query.status
    rows = (
        row
        for row in call.store.newest(Domain, call.account.id)
        if status is None or serializers.domain_status(row, call.store) == status
    )
    return call.page(rows, lambda row: serializers.domain(row, call.store))


def get_domain(call: Call) -> Response:
    return Response(200, serializers.domain(call.domain(), call.store))


def _nameservers(call: Call, given: list[str] | None) -> list[str]:
    if given is None:
        return list(price_list.NAMESERVERS)
    if len(given) not in dialects.NAMESERVER_COUNT(call.dialect):
        raise invalid(nameservers="too_many")
    return [host.rstrip(".").lower() for host in given]


def _check_free(call: Call, name: str) -> None:
    if registrar.renewable(call.store, name, call.account.id) is not None:
        raise ApiError("domain_exists", "the domain has expired and can be renewed")
    owner = registrar.find_active(call.store, name)
    if owner is not None:
        raise ApiError("domain_exists" if owner.account_id == call.account.id else "domain_taken")


def register_domain(call: Call) -> Response:
    store, body, account = call.store, call.body, call.account
    if body.auto_renew is not None and not dialects.AUTO_RENEW_AT_REGISTRATION(call.dialect):
        raise invalid(auto_renew="unknown")
    name, zone = registrar.registrable(body.name)
    nameservers = _nameservers(call, body.nameservers)
    years = body.years or max(1, zone.min_years)
    if not zone.min_years <= years <= zone.max_years:
        raise invalid_period("years")
    privacy = (
        body.privacy if body.privacy is not None else dialects.PRIVACY_DEFAULT(call.dialect) and zone.privacy
    )
    registrar.check_privacy(zone, privacy)
    _check_free(call, name)
    if registrar.look_up(name).problem is not None:
        raise ApiError("domain_taken", "the name cannot be registered")
    if body.promo_code is not None and pricing.promo_problem(account, body.promo_code) is not None:
        raise invalid(promo_code="invalid")
    promo = [("promo", price_list.PROMO_CODES[body.promo_code.upper()].percent)] if body.promo_code else []
    price = pricing.discounted(zone.price_register * years, promo)
    pending = "registrar" in call.fault
    domain = store.number(
        Domain(
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
    )
    invoice = call.purchase("domain_registration", price.total, f"Domain {name}", domain_id=domain.id)
    if body.promo_code is not None and not call.simulated:
        account.promo_used = [*account.promo_used, body.promo_code.upper()]
    call.add(domain)
    if not call.simulated:
        # An expired domain of another account can no longer be renewed.
        registrar.cancel_other_owners(store, domain)
    if pending and not call.simulated:
        _decide_later(call, registrar.SYNC_SECONDS, invoice, "sync_domain", domain.id)
    elif call.simulated:
        domain.status, domain.expires_at = "active", periods.months_after(call.now, 12 * years)
    else:
        registrar.activate(store, domain, call.now)
    view = {
        "status": "pending" if pending else "registered",
        "domain": _shown(call, domain, dialects.REGISTERED_DOMAIN(call.dialect)),
        # Null while the domain cannot be read: pending or simulated.
        "domain_id": None if pending or call.simulated else domain.id,
        "zone": zone.tld,
        "years": years,
        "charged": format_money(price.total),
        "discount": format_money(price.base - price.total),
        "promo_code": body.promo_code,
        "currency": account.currency,
        "expires_at": None if pending else format_timestamp(domain.expires_at),
        "message": "The registrar has not confirmed yet." if pending else None,
        "balance_after": format_money(call.balance_after(price.total)),
    }
    return Response(202 if pending else 201, view)


def _decide_later(
    call: Call, seconds: float, invoice: Invoice | None, task: str, domain_id: int, note: str = ""
) -> None:
    """The registrar has accepted the order. It confirms it in ``seconds``, refuses it at the next sync, or
    never says anything, as the fault ``registrar`` says.
    """
    decision = call.fault.get("registrar", "pending")
    if decision == "refused" and invoice is not None:
        call.store.schedule(call.now + registrar.SYNC_SECONDS, "refuse_domain", invoice.id)
    elif decision == "pending":
        call.store.schedule(call.now + seconds, task, domain_id, note)


def _shown(call: Call, domain: Domain, how: str) -> Any:
    if how == "name":
        return domain.name
    # A simulated or pending domain cannot be read, so it has no id.
    known = domain.status != "pending" and domain.id in call.store.domains
    return (
        serializers.domain(domain, call.store)
        if known
        else {**serializers.domain(domain, call.store), "id": None}
    )


def set_domain_nameservers(call: Call) -> Response:
    domain = call.domain(change=True)
    nameservers = _nameservers(call, call.body.nameservers)
    _check_settled(domain)
    row = call.draft(domain)
    row.nameservers = nameservers
    return Response(200, serializers.domain(row, call.store))


def _check_settled(domain: Domain) -> None:
    if domain.status in ("pending", "transfer_pending", "cancelled"):
        raise ApiError("conflict", f"the domain is {domain.status}", details={"status": domain.status})


def update_domain(call: Call) -> Response:
    body, domain = call.body, call.domain(change=True)
    for name in body.model_fields_set:
        if getattr(body, name) is None:
            raise invalid(**{name: "wrong_type"})
    _check_settled(domain)
    if body.privacy is not None:
        registrar.check_privacy(price_list.ZONES[domain.tld], body.privacy)
    row = call.draft(domain)
    row.privacy = body.privacy if body.privacy is not None else row.privacy
    row.auto_renew = body.auto_renew if body.auto_renew is not None else row.auto_renew
    return Response(200, serializers.domain(row, call.store))


def renew_domain(call: Call) -> Response:
    domain = call.domain(change=True)
    years: int = call.body.years
    _check_settled(domain)
    zone = price_list.ZONES[domain.tld]
    until = registrar.renewed_until(domain, years, call.now)
    if until > periods.months_after(call.now, 12 * registrar.MOST_YEARS):
        raise ApiError(
            "upstream_rejected", f"the registrar allows at most {registrar.MOST_YEARS} years ahead"
        )
    amount = zone.price_renew * years
    invoice = call.purchase("domain_renewal", amount, f"Renewal of {domain.name}", domain_id=domain.id)
    row = call.draft(domain)
    pending = "registrar" in call.fault
    if pending:
        if invoice is not None:
            note = f"{years} {invoice.id}"
            _decide_later(call, registrar.SYNC_SECONDS, invoice, "extend_domain", domain.id, note)
    elif call.simulated:
        row.expires_at = until
        row.years += years
    else:
        registrar.extend(call.store, domain, years, call.now)
    how = dialects.RENEWED_DOMAIN(call.dialect)
    status, word = dialects.PENDING_RENEWAL(call.dialect) if pending else (200, "renewed")
    return Response(
        status,
        {
            "status": word,
            "domain": row.name if how == "name" else serializers.domain(row, call.store),
            "domain_id": row.id,
            "years": years,
            "total_years": row.years,
            "charged": format_money(amount),
            "balance_after": format_money(call.balance_after(amount)),
            "currency": call.account.currency,
            "expires_at": None if pending else format_timestamp(row.expires_at),
            "message": "The registrar accepted; the new date is not visible yet." if pending else None,
        },
    )


def transfer_domain(call: Call) -> Response:
    store, body, account = call.store, call.body, call.account
    name, zone = registrar.registrable(body.name)
    if zone.price_transfer is None:
        raise ApiError("upstream_rejected", f"transfers of .{zone.tld} are not offered")
    nameservers = _nameservers(call, body.nameservers)
    privacy = (
        body.privacy if body.privacy is not None else dialects.PRIVACY_DEFAULT(call.dialect) and zone.privacy
    )
    registrar.check_privacy(zone, privacy)
    # Refused for a domain that this account has or is transferring.
    if any(
        row.name == name and row.account_id == account.id and row.status != "cancelled"
        for row in store.domains.values()
    ):
        raise ApiError("domain_exists")
    if body.auth_code.reveal().startswith("WRONG-"):
        raise ApiError("upstream_rejected", "the present registrar refused the auth code")
    domain = store.number(
        Domain(
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
    )
    invoice = call.purchase(
        "domain_transfer", zone.price_transfer, f"Transfer of {name}", domain_id=domain.id
    )
    if not call.simulated:
        store.add(domain)
        _decide_later(call, registrar.TRANSFER_SECONDS, invoice, "sync_domain", domain.id)
    return Response(
        202,
        {
            "status": dialects.TRANSFER_STATUS(call.dialect),
            "domain": name,
            "domain_id": None if call.simulated else domain.id,
            "charged": format_money(zone.price_transfer),
            "currency": account.currency,
            "message": None,
        },
    )
