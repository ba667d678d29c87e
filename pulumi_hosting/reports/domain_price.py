"""What a domain costs per month: a twelfth of its renewal."""

from decimal import Decimal

from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.reports.planned_changes import decimal_of
from pulumi_hosting.session.request import Request


def recorded_monthly(domain: JsonObject) -> Decimal | None:
    """By its own ``price_renew``; None where it has none."""
    return _twelfth(decimal_of(domain.get("price_renew")))


def monthly(request: Request, domain: JsonObject) -> tuple[Decimal | None, str | None]:
    """By its own ``price_renew``, else by that of its zone, and the currency; None where neither is known."""
    own, currency = decimal_of(domain.get("price_renew")), domain.get("currency")
    yearly, currency = catalog_reads.renewal_price(request, str(domain.get("name")), own, currency)
    return _twelfth(yearly), currency


def _twelfth(yearly: Decimal | None) -> Decimal | None:
    return None if yearly is None else yearly / 12
