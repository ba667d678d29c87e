"""The catalog: tariffs, images, locations, domain zones, and quotes by the price functions of ordering."""

from pulumi_hosting.emulator import price_list, pricing, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.formats import CENT, format_money
from pulumi_hosting.emulator.messages import ApiError, Response, invalid
from pulumi_hosting.emulator.rows import Tariff
from pulumi_hosting.emulator.validation import invalid_period


def _tariff(call: Call, id: int) -> Tariff:
    tariff = call.store.tariffs.get(id)
    if tariff is None or tariff.disabled:
        raise ApiError("not_found")
    return tariff


def list_tariffs(call: Call) -> Response:
    place = call.query.location_id
    rows = [
        row
        for row in call.store.tariffs.values()
        if not row.disabled and (place is None or row.location_id == place)
    ]
    return Response(200, {"data": [serializers.tariff(row, call.store, call.account) for row in rows]})


def get_tariff(call: Call) -> Response:
    return Response(200, serializers.tariff(_tariff(call, call.ids["tariff_id"]), call.store, call.account))


def list_os_images(call: Call) -> Response:
    tariff = None if call.query.tariff_id is None else call.store.tariffs.get(call.query.tariff_id)
    if call.query.tariff_id is not None and (tariff is None or tariff.disabled):
        raise invalid(tariff_id="unknown")
    excluded = tariff.excluded_os if tariff else ()
    return Response(
        200,
        {
            "data": [
                serializers.image(image) for image in price_list.IMAGES.values() if image.slug not in excluded
            ]
        },
    )


def list_locations(call: Call) -> Response:
    return Response(
        200, {"data": [serializers.location(row, call.store) for row in price_list.LOCATIONS.values()]}
    )


def list_zones(call: Call) -> Response:
    return Response(
        200, {"data": [serializers.zone(row, call.account.currency) for row in price_list.ZONES.values()]}
    )


def get_quote(call: Call) -> Response:
    query = call.query
    tariff = _tariff(call, query.tariff_id)
    hourly = query.hours is not None or query.billing_cycle == "hourly"
    if (hourly and (tariff.price_hourly is None or query.months is not None)) or (
        query.hours is not None and query.billing_cycle == "monthly"
    ):
        raise invalid_period("hours" if hourly else "months")
    hours = (query.hours or 1) if hourly else None
    months = None if hourly else query.months or 1
    problem = None if query.promo_code is None else pricing.promo_problem(call.account, query.promo_code)
    price = pricing.price(
        call.store, call.account, tariff, months=months, hours=hours, promo=query.promo_code
    )
    balance = call.account.balance
    promo = (
        None
        if query.promo_code is None
        else {"code": query.promo_code, "valid": problem is None, "message": problem}
    )
    return Response(
        200,
        {
            "tariff_id": tariff.id,
            "billing_cycle": "hourly" if hourly else "monthly",
            "months": months,
            "hours": hours,
            "base_amount": format_money(price.base),
            "discounts": price.discounts_view(),
            "total": format_money(price.total),
            "currency": call.account.currency,
            "promo": promo,
            "balance": format_money(balance),
            "balance_sufficient": balance >= price.total,
            "shortfall": format_money(max(price.total - balance, 0 * CENT)),
        },
    )
