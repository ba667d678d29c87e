"""The work of `pulumi-hosting cost`."""

from collections.abc import Iterator
from functools import reduce
from operator import add
from pathlib import Path

from pulumi_hosting.cli.connection import asking
from pulumi_hosting.cli.output import money, print_warning
from pulumi_hosting.reports.account_prices import AccountPrices
from pulumi_hosting.reports.cost import BalanceForecast, CostLine, CostReport, cost
from pulumi_hosting.reports.planned_changes import planned
from pulumi_hosting.reports.report import CannotAnswer, Points, Report, Section, Summary, Table

HEADERS = ("ACTION", "KIND", "NAME", "NOW", "PER MONTH", "DIFFERENCE", "REFUND", "NOTE")


def run(previews: tuple[Path, ...]) -> Report:
    plan = reduce(add, map(planned, previews))
    try:
        with asking() as (request, progress):
            progress.step(1, None, "asking the account for prices")
            prices = AccountPrices(request)
            found = cost(plan, prices)
    except CannotAnswer as error:  # no key: what the preview says is left
        found = cost(plan, AccountPrices(None, str(error)))
    else:
        for refusal in prices.refusals:
            print_warning(refusal)
    return Report(found.facts(), [*_sections(found)])


def _sections(found: CostReport) -> Iterator[Section]:
    if rows := _rows(found):
        yield Table(HEADERS, rows, foreign=(2, 7))
        yield ""
    yield Summary("cost", _summary(found))
    if found.balance is not None:
        yield Summary("balance", _balance(found.balance))
    if found.not_known:
        yield Points("not known", "Not known, and not in the sums", found.not_known)
    if found.ending:
        yield Points("ends", "Ends soon, and is not paid for", found.ending)


def _summary(found: CostReport) -> str:
    parts = []
    for currency, sums in found.totals.items():
        refund = f", {money(sums.refunded, currency)} refunded" if sums.refunded else ""
        parts.append(
            f"{money(sums.charged, currency)} now{refund}, {money(sums.monthly_after, currency)} per month "
            f"afterwards ({sums.monthly_difference:+.2f})"
        )
    return "; ".join(parts) or ("nothing" if not found.not_known else "nothing that is known")


def _balance(balance: BalanceForecast) -> str:
    after = f"{money(balance.amount, balance.currency)}, then {money(balance.after, balance.currency)}"
    if balance.after < 0:
        missing = money(-balance.after, balance.currency)
        return f"{money(balance.amount, balance.currency)}, not sufficient. Next: top up {missing}"
    if balance.lasts_until is None:
        return f"{after}; covers every renewal of the next three years"
    return f"{after}; lasts until {balance.lasts_until:%Y-%m-%d}, when {balance.first_uncovered} renews"


def _rows(found: CostReport) -> list[tuple[object, ...]]:
    """The changes; what stays as it is is in the sums only."""
    return [
        (
            line.action,
            line.kind.replace("_", " "),
            line.name,
            money(line.charged, line.currency),
            money(line.monthly_after, line.currency),
            "not known" if line.monthly_difference is None else f"{line.monthly_difference:+.2f}",
            money(line.refunded, line.currency) if line.refunded is None or line.refunded else "",
            "; ".join(line.notes),
        )
        for line in found.resources
        if line.is_change and not _is_free(line)
    ]


def _is_free(line: CostLine) -> bool:
    return all(amount == 0 for amount in line.amounts) and line.action != "take over"
