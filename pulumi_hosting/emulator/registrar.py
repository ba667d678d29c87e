"""The domain registrar: names, availability, activation. The README lists the rules of its decisions."""

from collections.abc import Iterator
from dataclasses import dataclass

import idna

from pulumi_hosting.emulator import events, periods
from pulumi_hosting.emulator.messages import Refusal, invalid
from pulumi_hosting.emulator.rows import DomainRow, ZoneRow
from pulumi_hosting.emulator.store import Store

SYNC_SECONDS = 86400
TRANSFER_SECONDS = 5 * 86400
MOST_YEARS = 10
WARNING_DAYS = (30, 7, 1)

RESERVED = {"taken-": "taken", "premium-": "premium", "reserved-": "reserved"}


@dataclass(frozen=True, slots=True)
class Name:
    """A domain name: ``text`` in punycode, its zone, and why it cannot be registered (``None``: it can)."""

    text: str
    zone: ZoneRow | None
    problem: str | None


def look_up(store: Store, given: str) -> Name:
    """Check a name in Unicode or punycode; who owns it is not part of the check."""
    try:
        text = idna.encode(given.strip().rstrip("."), uts46=True, std3_rules=True).decode("ascii").lower()
    except idna.IDNAError:
        return Name(given.lower(), None, "invalid")
    label, _, tld = text.partition(".")
    zone = store.zone(tld)
    if not tld or not label:
        return Name(text, None, "invalid")
    if zone is None:
        return Name(text, None, "unsupported_tld")
    return Name(
        text, zone, next((reason for prefix, reason in RESERVED.items() if label.startswith(prefix)), None)
    )


def _named(store: Store, text: str, *statuses: str) -> Iterator[DomainRow]:
    """The domains of that name, on any account, that have one of ``statuses``."""
    return (row for row in store.domains.values() if row.name == text and row.status in statuses)


def find_active(store: Store, text: str) -> DomainRow | None:
    """The active or pending domain of that name, on any account."""
    return next(_named(store, text, "active", "pending", "transfer_pending"), None)


def renewable(store: Store, text: str, account_id: int) -> DomainRow | None:
    """The account's expired domain of that name, which it can renew."""
    if store.service.readings["expired_renewal"] == "refused":
        return None
    return next((row for row in _named(store, text, "expired") if row.account_id == account_id), None)


def cancel_other_owners(store: Store, domain: DomainRow) -> None:
    """A name has one owner: cancel every other active or expired domain of this name."""
    for other in list(_named(store, domain.name, "active", "expired")):
        if other is not domain:
            other.status = "cancelled"


def registrable(store: Store, given: str) -> tuple[str, ZoneRow]:
    """The name and zone to order; ``validation_error`` if the name cannot be registered."""
    name = look_up(store, given)
    if name.zone is None:
        raise invalid(name=name.problem or "invalid")
    return name.text, name.zone


def activate(store: Store, domain: DomainRow) -> None:
    """The registrar confirmed: the domain is active, and other accounts lose the name."""
    cancel_other_owners(store, domain)
    domain.status, domain.locked = "active", True
    domain.registered_at = domain.registered_at or store.now
    domain.expires_at = periods.months_after(store.now, 12 * domain.years)
    schedule_expiry(store, domain)
    events.of(store, "domain.registered", domain)


def renewed_until(store: Store, domain: DomainRow, years: int) -> float:
    """The end of a renewal, counted from the end of the present period, or from now if that is over."""
    return periods.months_after(max(domain.expires_at or store.now, store.now), 12 * years)


def extend(store: Store, domain: DomainRow, years: int) -> None:
    """A paid renewal; its event follows with the next sync."""
    domain.expires_at = renewed_until(store, domain, years)
    domain.years += years
    if domain.status == "expired":
        domain.status = "active"
    schedule_expiry(store, domain)
    store.schedule(store.now + SYNC_SECONDS, "domain_renewed", domain.id)


def schedule_expiry(store: Store, domain: DomainRow) -> None:
    """Schedule the warnings 30, 7 and 1 day before expiry, and the expiry. A later renewal invalidates them
    by their note.
    """
    expires = domain.expires_at or store.now
    for days in WARNING_DAYS:
        if expires - days * 86400 > store.now:
            store.schedule(expires - days * 86400, "domain_expiring", domain.id, str(domain.expires_at))
    store.schedule(expires, "domain_due", domain.id, str(domain.expires_at))


def check_privacy(zone: ZoneRow, privacy: bool) -> None:
    if privacy and not zone.privacy:
        raise Refusal("upstream_rejected", f"the registrar offers no privacy for .{zone.tld}")
