"""Domains: availability, registration, renewal, transfer, name servers, privacy."""

from typing import Any

from pulumi_hosting.emulator import dialects, periods, price_list, pricing, registrar, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import View
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import PENDING, DomainRow, InvoiceRow, ZoneRow
from pulumi_hosting.emulator.validation import invalid_period


def check_domain_availability(call: Call) -> Answer:
    name = registrar.look_up(call.store, call.query.name)
    held = registrar.find_active(call.store, name.text) or registrar.renewable(
        call.store, name.text, call.account.id
    )
    reason = name.problem or ("taken" if held else None)
    zone = name.zone
    return call.answer(
        200,
        zone,
        name=name.text,
        available=reason is None,
        reason=reason,
        premium=reason == "premium",
        min_years=zone.min_years if zone else 1,
    )


def list_domains(call: Call) -> Answer:
    status = call.query.status
    rows = (
        row
        for row in call.store.newest(DomainRow, call.account.id)
        if status is None or serializers.domain_status(row, call.store) == status
    )
    return call.page(rows)


def get_domain(call: Call) -> Answer:
    return Answer(200, call.view(call.domain()))


def _nameservers(call: Call, given: list[str] | None) -> list[str]:
    if given is None:
        return list(price_list.NAMESERVERS)
    if len(given) not in dialects.NAMESERVER_COUNT(call.dialect):
        raise invalid(nameservers="too_many")
    return [host.rstrip(".").lower() for host in given]


def _privacy(call: Call, zone: ZoneRow) -> bool:
    """Whether the owner is hidden: as the body says, else as the dialect does."""
    given: bool | None = call.body.privacy
    privacy = given if given is not None else dialects.PRIVACY_DEFAULT(call.dialect) and zone.privacy
    registrar.check_privacy(zone, privacy)
    return privacy


def _ordered(
    call: Call, name: str, zone: ZoneRow, privacy: bool, nameservers: list[str], **columns: Any
) -> DomainRow:
    """The row of an ordered domain, numbered but not added."""
    return call.store.number(
        DomainRow(
            account_id=call.account.id,
            name=name,
            tld=zone.tld,
            auto_renew=bool(call.body.auto_renew),
            privacy=privacy,
            nameservers=nameservers,
            **columns,
        )
    )


def _check_free(call: Call, name: str) -> None:
    if registrar.renewable(call.store, name, call.account.id) is not None:
        raise Refusal("domain_exists", "the domain has expired and can be renewed")
    owner = registrar.find_active(call.store, name)
    if owner is not None:
        raise Refusal("domain_exists" if owner.account_id == call.account.id else "domain_taken")


def register_domain(call: Call) -> Answer:
    store, body = call.store, call.body
    if body.auto_renew is not None and not dialects.AUTO_RENEW_AT_REGISTRATION(call.dialect):
        raise invalid(auto_renew="unknown")
    name, zone = registrar.registrable(call.store, body.name)
    nameservers = _nameservers(call, body.nameservers)
    years = body.years or max(1, zone.min_years)
    if not zone.min_years <= years <= zone.max_years:
        raise invalid_period("years")
    privacy = _privacy(call, zone)
    _check_free(call, name)
    if registrar.look_up(call.store, name).problem is not None:
        raise Refusal("domain_taken", "the name cannot be registered")
    call.check_promo(body.promo_code)
    code = body.promo_code
    promo = (("promo", price_list.PROMO_CODES[code.upper()].percent),) if code else ()
    price = pricing.discounted(zone.price_register * years, promo)
    pending = "registrar" in call.fault
    domain = _ordered(call, name, zone, privacy, nameservers, status="pending", years=years)
    invoice = call.purchase("domain_registration", price.total, f"Domain {name}", domain_id=domain.id)
    call.use_promo(body.promo_code)
    call.add(domain)
    if not call.simulated:
        # An expired domain of another account can no longer be renewed.
        registrar.cancel_other_owners(store, domain)
    if pending and not call.simulated:
        _decide_later(call, registrar.SYNC_SECONDS, invoice, "sync_domain", domain.id)
    elif call.simulated:
        domain.status, domain.expires_at = "active", periods.months_after(call.now, 12 * years)
    else:
        registrar.activate(store, domain)
    return call.answer(
        202 if pending else 201,
        status="pending" if pending else "registered",
        domain=_shown(call, domain, dialects.REGISTERED_DOMAIN(call.dialect)),
        # Null while the domain cannot be read: pending or simulated.
        domain_id=None if pending or call.simulated else domain.id,
        zone=zone.tld,
        years=years,
        charged=price.total,
        discount=price.base - price.total,
        promo_code=body.promo_code,
        expires_at=None if pending else domain.expires_at,
        message="The registrar has not confirmed yet." if pending else None,
        balance_after=call.balance_after(price.total),
    )


def _decide_later(
    call: Call, seconds: float, invoice: InvoiceRow | None, task: str, domain_id: int, note: str = ""
) -> None:
    """The registrar has accepted the order. It confirms it in ``seconds``, refuses it at the next sync, or
    never says anything, as the fault ``registrar`` says.
    """
    decision = call.fault.get("registrar", "pending")
    if decision == "refused" and invoice is not None:
        call.store.schedule(call.now + registrar.SYNC_SECONDS, "refuse_domain", invoice.id)
    elif decision == "pending":
        call.store.schedule(call.now + seconds, task, domain_id, note)


def _shown(call: Call, domain: DomainRow, how: str) -> View | str:
    if how == "name":
        return domain.name
    # A simulated or pending domain cannot be read, so it has no id.
    known = domain.status != "pending" and domain.id in call.store.domains
    return call.view(domain) if known else {**call.view(domain), "id": None}


def set_domain_nameservers(call: Call) -> Answer:
    domain = call.domain(change=True)
    nameservers = _nameservers(call, call.body.nameservers)
    _check_settled(domain)
    row = call.draft(domain)
    row.nameservers = nameservers
    return Answer(200, call.view(row))


def _check_settled(domain: DomainRow) -> None:
    if domain.status in (*PENDING, "cancelled"):
        raise Refusal("conflict", f"the domain is {domain.status}", details={"status": domain.status})


def update_domain(call: Call) -> Answer:
    domain = call.domain(change=True)
    _check_settled(domain)
    registrar.check_privacy(call.store.zone_of(domain), bool(call.body.privacy))
    row = call.draft(domain)
    call.assign(row)
    return Answer(200, call.view(row))


def renew_domain(call: Call) -> Answer:
    domain = call.domain(change=True)
    years: int = call.body.years
    _check_settled(domain)
    if domain.status == "expired" and registrar.renewable(call.store, domain.name, call.account.id) is None:
        raise Refusal("conflict", "the domain has expired", details={"status": domain.status})
    call.check_not_early(domain.expires_at)
    zone = call.store.zone_of(domain)
    until = registrar.renewed_until(call.store, domain, years)
    if until > periods.months_after(call.now, 12 * registrar.MOST_YEARS):
        words = f"the registrar allows at most {registrar.MOST_YEARS} years ahead"
        raise Refusal("upstream_rejected", words)
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
        registrar.extend(call.store, domain, years)
    status, word = dialects.PENDING_RENEWAL(call.dialect) if pending else (200, "renewed")
    return call.answer(
        status,
        status=word,
        domain=_shown(call, row, dialects.RENEWED_DOMAIN(call.dialect)),
        domain_id=row.id,
        years=years,
        total_years=row.years,
        charged=amount,
        balance_after=call.balance_after(amount),
        expires_at=None if pending else row.expires_at,
        message="The registrar accepted; the new date is not visible yet." if pending else None,
    )


def transfer_domain(call: Call) -> Answer:
    store, body, account = call.store, call.body, call.account
    name, zone = registrar.registrable(call.store, body.name)
    if zone.price_transfer is None:
        raise Refusal("upstream_rejected", f"transfers of .{zone.tld} are not offered")
    nameservers, privacy = _nameservers(call, body.nameservers), _privacy(call, zone)
    # Refused for a domain that this account has or is transferring.
    if any(
        row.name == name and row.account_id == account.id and row.status != "cancelled"
        for row in store.domains.values()
    ):
        raise Refusal("domain_exists")
    if body.auth_code.reveal().startswith("WRONG-"):
        raise Refusal("upstream_rejected", "the present registrar refused the auth code")
    domain = _ordered(call, name, zone, privacy, nameservers, status="transfer_pending", years=1)
    words = f"Transfer of {name}"
    invoice = call.purchase("domain_transfer", zone.price_transfer, words, domain_id=domain.id)
    if not call.simulated:
        store.add(domain)
        _decide_later(call, registrar.TRANSFER_SECONDS, invoice, "sync_domain", domain.id)
    return call.answer(
        202,
        status=dialects.TRANSFER_STATUS(call.dialect),
        domain=name,
        domain_id=None if call.simulated else domain.id,
        charged=zone.price_transfer,
    )
