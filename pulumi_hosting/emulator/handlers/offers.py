"""The catalog: tariffs, images, locations, domain zones, and quotes by the price functions of ordering."""

from pulumi_hosting.emulator import catalog, money, views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.validation import invalid_period
from pulumi_hosting.emulator.wire import CENT, Answer, Refusal, invalid
from pulumi_hosting.emulator.wire import money as text
from pulumi_hosting.emulator.world import Tariff


def _tariff(call: Call, id: int) -> Tariff:
    tariff = call.world.tariffs.get(id)
    if tariff is None or tariff.disabled:
        raise Refusal("not_found")
    return tariff


def list_tariffs(call: Call) -> Answer:
    place = call.query.location_id
    rows = [row for row in call.world.tariffs.values() if not row.disabled and (place is None or row.location_id == place)]
    return Answer(200, {"data": [views.tariff(row, call.world, call.account) for row in rows]})


def get_tariff(call: Call) -> Answer:
    return Answer(200, views.tariff(_tariff(call, call.ids["tariff_id"]), call.world, call.account))


def list_os_images(call: Call) -> Answer:
    tariff = None if call.query.tariff_id is None else call.world.tariffs.get(call.query.tariff_id)
    if call.query.tariff_id is not None and (tariff is None or tariff.disabled):
        raise invalid(tariff_id="unknown")
    excluded = tariff.excluded_os if tariff else ()
    return Answer(200, {"data": [views.image(image) for image in catalog.IMAGES.values() if image.slug not in excluded]})


def list_locations(call: Call) -> Answer:
    return Answer(200, {"data": [views.location(row, call.world) for row in catalog.LOCATIONS.values()]})


def list_zones(call: Call) -> Answer:
    return Answer(200, {"data": [views.zone(row, call.account.currency) for row in catalog.ZONES.values()]})


def get_quote(call: Call) -> Answer:
    query = call.query
    tariff = _tariff(call, query.tariff_id)
    hourly = query.hours is not None or query.billing_cycle == "hourly"
    if (hourly and (tariff.price_hourly is None or query.months is not None)) or (
        query.hours is not None and query.billing_cycle == "monthly"
    ):
        raise invalid_period("hours" if hourly else "months")
    hours = (query.hours or 1) if hourly else None
    months = None if hourly else query.months or 1
    problem = None if query.promo_code is None else money.promo_problem(call.account, query.promo_code)
    price = money.price(call.world, call.account, tariff, months=months, hours=hours, promo=query.promo_code)
    balance = call.account.balance
    promo = None if query.promo_code is None else {"code": query.promo_code, "valid": problem is None, "message": problem}
    return Answer(
        200,
        {
            "tariff_id": tariff.id,
            "billing_cycle": "hourly" if hourly else "monthly",
            "months": months,
            "hours": hours,
            "base_amount": text(price.base),
            "discounts": price.discounts_view(),
            "total": text(price.total),
            "currency": call.account.currency,
            "promo": promo,
            "balance": text(balance),
            "balance_sufficient": balance >= price.total,
            "shortfall": text(max(price.total - balance, 0 * CENT)),
        },
    )
