"""Prices, discounts and refunds, to the cent.

A price starts from the public price of the whole period; the discounts ``group``, ``loyalty``, ``volume``,
``period`` and ``promo`` are then taken off in this order, each from what the one before left, each rounded
half up to the cent. Volume: 3 % from the 5th server on, 5 % from the 10th. Period: 5 % for 3 months, 8 % for
6, 12 % for 12; nothing for hours. Servers that are gone do not count.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from pulumi_hosting.api import models as m
from pulumi_hosting.emulator import dialects, periods, price_list
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.formats import CENT, View, shown_as
from pulumi_hosting.emulator.store import Store

PERIOD_PERCENT = {1: Decimal(0), 3: Decimal(5), 6: Decimal(8), 12: Decimal(12)}
# By the number of servers, the new one included; a larger number has the last one.
VOLUME_PERCENT = (*[Decimal(0)] * 5, *[Decimal(3)] * 5, Decimal(5))
MOST_COUNTED = len(VOLUME_PERCENT) - 1


def cents(value: Decimal) -> Decimal:
    return value.quantize(CENT, ROUND_HALF_UP)


class Price(NamedTuple):
    base: Decimal
    total: Decimal
    discounts: tuple[tuple[str, Decimal, Decimal], ...]


def period_of(asked: Any) -> tuple[int | None, int | None]:
    """The months or hours that an order or a quote asks for, at least one."""
    if asked.hours is None and asked.billing_cycle != "hourly":
        return asked.months or 1, None
    return None, asked.hours or 1


def volume_percent(store: Store, account: r.AccountRow) -> Decimal:
    """The volume discount for one more server of the account."""
    # Run twice in every order, so it stops at the largest discount, without calls of is_gone and is_sandbox.
    count = 1
    for server in store.of(r.ServerRow, account.id).values():
        if server.owner_key_id is None and server.status not in r.GONE:
            count += 1
            if count == MOST_COUNTED:
                break
    return VOLUME_PERCENT[count]


def promo_problem(account: r.AccountRow, code: str) -> str | None:
    """Why a promo code is not accepted, or ``None``."""
    rule = price_list.PROMO_CODES.get(code.upper())
    if rule is None:
        return "unknown code"
    if rule.expired:
        return "expired"
    if rule.once and code.upper() in account.promo_used:
        return "already used"
    return None


@lru_cache(1024)
def discounted(base: Decimal, percents: tuple[tuple[str, Decimal], ...]) -> Price:
    base = total = cents(base)
    taken = []
    for type, percent in percents:
        if not percent:
            continue
        amount = cents(total * percent / 100)
        if amount:
            taken.append((type, percent, amount))
            total -= amount
    return Price(base, total, tuple(taken))


def price(
    store: Store,
    account: r.AccountRow,
    tariff: r.TariffRow,
    *,
    months: int | None = None,
    hours: int | None = None,
    promo: str | None = None,
) -> Price:
    """The price of ``months`` or ``hours`` of a tariff for this account now."""
    percents = [
        ("group", account.group_discount_percent),
        ("loyalty", account.loyalty_discount_percent),
        ("volume", volume_percent(store, account)),
    ]
    if hours is not None:
        base = (tariff.price_hourly or Decimal(0)) * hours
    else:
        base = tariff.price_monthly * (months or 1)
        percents.append(("period", PERIOD_PERCENT[months or 1]))
    if promo is not None and promo_problem(account, promo) is None:
        percents.append(("promo", price_list.PROMO_CODES[promo.upper()].percent))
    return discounted(base, tuple(percents))


def group_price(account: r.AccountRow, listed: Decimal) -> Decimal:
    """The monthly price of a tariff as the catalog shows it: with the group discount only."""
    return discounted(listed, (("group", account.group_discount_percent),)).total


def bought_addresses(store: Store, server: r.ServerRow) -> list[r.AddressRow]:
    return [address for address in store.of(r.AddressRow, server.id).values() if address.bought]


def recurring(store: Store, server: r.ServerRow) -> Decimal:
    """The cost of the next renewal today: of the server's own period, or of an hour if it is hourly."""
    months, hours = (None, 1) if server.cycle == "hourly" else (server.months, None)
    return renewal(store, server, months, hours)


def renewal(store: Store, server: r.ServerRow, months: int | None, hours: int | None) -> Decimal:
    """The cost of a renewal today, bought addresses included."""
    tariff, account = store.tariffs[server.tariff_id], store.accounts[server.account_id]
    total = price(store, account, tariff, months=months, hours=hours).total
    # An address that is being assigned is paid for and renews with the others.
    addresses = tariff.extra_ip_price * server.addresses_coming
    for address in bought_addresses(store, server):
        addresses += address.price_monthly
    if hours is not None:
        return total + cents(addresses * hours / periods.HOURS_OF_A_MONTH)
    return total + addresses * (months or 1)


def prorated(invoice: r.InvoiceRow, now: float) -> Decimal:
    """What is left of an invoice for what is left of its period, to the cent."""
    start, end = invoice.period_start or 0.0, invoice.period_end or 0.0
    if now >= end:
        return Decimal("0.00")
    left = Decimal(str(end - max(now, start))) / Decimal(str(end - start))
    return cents((invoice.amount - invoice.refunded) * left)


@dataclass(frozen=True, slots=True)
class Refund:
    """``referral_adjustment``: the referral reward in it, which is taken back."""

    gross_amount: Decimal
    reason: str | None
    parts: tuple[tuple[r.InvoiceRow, Decimal], ...] = ()
    referral_adjustment: Decimal = 0 * CENT

    @property
    def amount(self) -> Decimal:
        return self.gross_amount - self.referral_adjustment

    @property
    def refundable(self) -> bool:
        return self.reason is None and self.amount > 0


def refund(store: Store, server: r.ServerRow) -> Refund:
    """What a deletion credits now: of every paid invoice of the server the part for the remaining period."""
    nothing = Decimal("0.00")
    paid = [
        invoice
        for invoice in store.of(r.InvoiceRow, server.account_id).values()
        if invoice.server_id == server.id and invoice.status == "paid" and invoice.period_end is not None
    ]
    reasons = {
        "service_state": server.is_gone,
        "blocked": server.blocked,
        "no_payment_record": server.is_test or not paid,
        "promo_tariff": store.tariffs[server.tariff_id].non_refundable,
        "unpaid": server.status == "suspended" and store.now >= server.next_due_at,
    }
    for reason, applies in reasons.items():
        if applies:
            return Refund(nothing, reason)
    parts = tuple((invoice, prorated(invoice, store.now)) for invoice in paid if invoice.refundable)
    amount = sum((part for _, part in parts), nothing)
    if amount == 0:
        return Refund(nothing, "hourly" if server.cycle == "hourly" else "consumed", parts)
    reward = cents(amount * store.accounts[server.account_id].referral_percent / 100)
    return Refund(amount, None, parts, reward)


NOTES = {
    None: "The unused part of the paid period is credited to the balance.",
    "promo_tariff": "A promotional tariff is not refunded.",
    "blocked": "A server that is locked by staff is not refunded.",
    "unpaid": "Nothing paid is left.",
    "no_payment_record": "There is no payment for this server.",
    "service_state": "The server is gone already.",
    "hourly": "No prepaid hours are left.",
    "consumed": "Nothing is left of the paid period.",
}


def refund_view(store: Store, server: r.ServerRow, quote: Refund | None = None) -> View:
    quote, dialect = quote or refund(store, server), store.service.dialect
    breakdown = [
        shown_as(
            m.RefundItem,
            invoice,
            invoice_id=invoice.id,
            refund=part,
            days_left=periods.started_days(store.now, invoice.period_end or store.now),
        )
        for invoice, part in quote.parts
    ]
    return shown_as(
        m.RefundQuote,
        quote,
        server_id=server.id,
        currency=store.accounts[server.account_id].currency,
        excluded_reason=quote.reason and dialects.EXCLUDED_REASONS(dialect).get(quote.reason, quote.reason),
        days_left=periods.started_days(store.now, server.next_due_at) if quote.refundable else 0,
        note=NOTES[quote.reason],
        breakdown=breakdown if server.cycle != "hourly" or dialects.HOURLY_BREAKDOWN(dialect) else [],
        computed_at=store.now,
    )


def renews_automatically(server: r.ServerRow) -> bool:
    """Whether billing charges the next period when this one ends, if the balance covers it."""
    return (
        server.auto_renew
        and not server.blocked
        and not server.is_sandbox
        and server.status in ("active", "stopped")
    )


def renewals_until(server: r.ServerRow, now: float, horizon: float) -> int:
    """How often the server falls due from now to ``horizon``, both included."""
    due, times = server.next_due_at, 0
    if not renews_automatically(server) or due < now:
        return 0
    if server.cycle == "hourly":
        return max(0, int((horizon - due) // periods.HOUR_SECONDS) + 1)
    while due <= horizon:
        due, times = periods.months_after(due, server.months), times + 1
    return times


def upcoming(store: Store, account: r.AccountRow, now: float, days: int) -> Decimal:
    """All automatic renewals within ``days`` days; an hourly server renews every hour."""
    total, horizon = Decimal("0.00"), now + days * periods.DAY_SECONDS
    for server in store.of(r.ServerRow, account.id).values():
        if times := renewals_until(server, now, horizon):
            total += times * recurring(store, server)
    for domain in store.of(r.DomainRow, account.id).values():
        if domain_renews_automatically(domain) and now <= (domain.expires_at or 0.0) <= horizon:
            total += store.zone_of(domain).price_renew
    return total


def domain_renews_automatically(domain: r.DomainRow) -> bool:
    return domain.auto_renew and domain.status == "active" and not domain.blocked


LOW_DAYS = 7
"""A balance is low if it does not cover the charges of so many days."""


def is_low(store: Store, account: r.AccountRow, now: float) -> bool:
    """The balance does not cover the next 7 days."""
    return account.balance < upcoming(store, account, now, LOW_DAYS)


def monthly_renewals(store: Store, account: r.AccountRow) -> Decimal:
    """What the renewals of servers cost per month."""
    total = Decimal("0.00")
    for server in store.of(r.ServerRow, account.id).values():
        if renews_automatically(server):
            amount = recurring(store, server)
            is_hourly = server.cycle == "hourly"
            total += cents(amount * periods.HOURS_OF_A_MONTH if is_hourly else amount / server.months)
    return total


def balance_view(store: Store, account: r.AccountRow) -> View:
    week = upcoming(store, account, store.now, LOW_DAYS)
    return shown_as(
        m.Balance,
        account,
        upcoming_7d=week,
        upcoming_30d=upcoming(store, account, store.now, 30),
        low_balance=account.balance < week,
        auto_renew_total_monthly=monthly_renewals(store, account),
    )
