"""The catalog: tariffs, images, locations, domain zones, and quotes by the price functions of ordering."""

from pulumi_hosting.api import models as m
from pulumi_hosting.emulator import pricing, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import CENT, shown_as
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import TariffRow
from pulumi_hosting.emulator.validation import invalid_period


def _tariff(call: Call, id: int) -> TariffRow:
    tariff = call.store.tariffs.get(id)
    if tariff is None or tariff.disabled:
        raise Refusal("not_found")
    return tariff


def list_tariffs(call: Call) -> Answer:
    place = call.query.location_id
    rows = [
        row
        for row in call.store.tariffs.values()
        if not row.disabled and (place is None or row.location_id == place)
    ]
    return Answer(200, {"data": [serializers.tariff(row, call.store, call.account) for row in rows]})


def get_tariff(call: Call) -> Answer:
    row = _tariff(call, call.ids["tariff_id"])
    return Answer(200, serializers.tariff(row, call.store, call.account))


def list_os_images(call: Call) -> Answer:
    tariff = None if call.query.tariff_id is None else call.store.tariffs.get(call.query.tariff_id)
    if call.query.tariff_id is not None and (tariff is None or tariff.disabled):
        raise invalid(tariff_id="unknown")
    excluded = tariff.excluded_os if tariff else ()
    images = [row for row in call.store.images.values() if row.slug not in excluded]
    return Answer(200, {"data": [shown_as(m.OsImage, row) for row in images]})


def list_locations(call: Call) -> Answer:
    rows = call.store.locations.values()
    return Answer(200, {"data": [serializers.location(row, call.store) for row in rows]})


def list_zones(call: Call) -> Answer:
    rows = call.store.zones.values()
    return Answer(200, {"data": [serializers.zone(row, call.account.currency) for row in rows]})


def get_quote(call: Call) -> Answer:
    query = call.query
    tariff = _tariff(call, query.tariff_id)
    months, hours = pricing.period_of(query)
    hourly = hours is not None
    if (hourly and (tariff.price_hourly is None or query.months is not None)) or (
        query.hours is not None and query.billing_cycle == "monthly"
    ):
        raise invalid_period("hours" if hourly else "months")
    problem = None if query.promo_code is None else pricing.promo_problem(call.account, query.promo_code)
    price = pricing.price(
        call.store, call.account, tariff, months=months, hours=hours, promo=query.promo_code
    )
    balance = call.account.balance
    promo = {"code": query.promo_code, "valid": problem is None, "message": problem}
    return call.answer(
        200,
        tariff_id=tariff.id,
        billing_cycle="hourly" if hourly else "monthly",
        months=months,
        hours=hours,
        base_amount=price.base,
        discounts=[
            shown_as(m.Discount, type=type, percent=percent, amount=amount)
            for type, percent, amount in price.discounts
        ],
        total=price.total,
        promo=promo if query.promo_code is not None else None,
        balance=balance,
        balance_sufficient=balance >= price.total,
        shortfall=max(price.total - balance, 0 * CENT),
    )
