"""`pulumi-hosting cost`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulumi_hosting.cli.connection import connect, files
from pulumi_hosting.cli.output import (
    inline_code,
    json_option,
    json_text,
    markdown_option,
    markdown_table,
    money,
    print_warning,
    table,
)
from pulumi_hosting.cli.progress import Progress

if TYPE_CHECKING:
    from pulumi_hosting.reports.account_prices import AccountPrices
    from pulumi_hosting.reports.cost import BalanceForecast, CostLine, CostReport

HEADERS = ("ACTION", "KIND", "NAME", "NOW", "PER MONTH", "DIFFERENCE", "REFUND", "NOTE")


@click.command()
@click.argument(
    "previews",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@json_option
@markdown_option
def cost(previews: tuple[Path, ...], as_json: bool, as_markdown: bool) -> None:
    """Say what the changes of a preview cost: charged now, per month afterwards, refunded, and how long the
    balance lasts.

    FILE is the output of `pulumi preview --json`, the report that the callback hosting.cloud.drift wrote in
    a check run, or the output of the callback ansible.posix.json in one; - is standard input. What a preview
    does not say is asked of the account of HOSTING_API_KEY, if that is set. Nothing is changed. What is not
    known is named and not in the sums. Exit codes: 0, or 2 for a
    file that is no preview, or that of one that failed.

    Example: pulumi preview --json | pulumi-hosting cost --markdown -
    """
    from pulumi_hosting.reports import cost as report
    from pulumi_hosting.reports.planned_changes import planned

    with files():
        plan = reduce(add, [planned(path) for path in previews])
    with Progress() as progress, _prices(progress) as (prices, reason):
        found = report.cost(plan, prices, reason)
    for refusal in prices.refusals if prices is not None else ():
        print_warning(refusal)
    if as_json:
        click.echo(json_text(found.facts()))
    else:
        click.echo(markdown(found) if as_markdown else _text(found))


@contextmanager
def _prices(progress: Progress) -> "Iterator[tuple[AccountPrices | None, str]]":
    """The account's prices; without a key the reason why there are none."""
    from pulumi_hosting.client.exceptions import ConfigurationError
    from pulumi_hosting.reports.account_objects import reading
    from pulumi_hosting.reports.account_prices import AccountPrices

    try:
        client = connect(progress)
    except ConfigurationError as error:
        yield None, str(error)
        return
    progress.step(1, None, "asking the account for prices")
    with client:
        yield AccountPrices(reading(client, warn=progress.above(print_warning))), ""


def markdown(found: "CostReport") -> str:
    """The report for a pull request: the summary first."""
    lines = [f"**Cost:** {_summary(found)}"]
    lines += [f"**Balance:** {_balance(found.balance)}"] if found.balance is not None else []
    rows = _rows(found)
    if rows:
        headers = tuple(header.capitalize() for header in HEADERS)
        shown = [(*row[:2], inline_code(str(row[2])), *row[3:7], inline_code(str(row[7]))) for row in rows]
        lines.append(markdown_table(headers, shown))
    if found.unknown:
        unknown = "\n".join(f"- {inline_code(line)}" for line in found.unknown)
        lines.append(f"Not known, and not in the sums:\n\n{unknown}")
    return "\n\n".join(lines)


def _text(found: "CostReport") -> str:
    rows, lines = _rows(found), []
    if rows:
        lines += [table(HEADERS, rows), ""]
    lines.append(f"cost:    {_summary(found)}")
    if found.balance is not None:
        lines.append(f"balance: {_balance(found.balance)}")
    lines += [f"not known: {line}" for line in found.unknown]
    return "\n".join(lines)


def _summary(found: "CostReport") -> str:
    parts = []
    for currency, sums in found.totals.items():
        refund = f", {money(sums.refunded, currency)} refunded" if sums.refunded else ""
        parts.append(
            f"{money(sums.charged, currency)} now{refund}, {money(sums.monthly_after, currency)} per month "
            f"afterwards ({sums.difference:+.2f})"
        )
    return "; ".join(parts) or ("nothing" if not found.unknown else "nothing that is known")


def _balance(balance: "BalanceForecast") -> str:
    after = f"{money(balance.balance, balance.currency)}, then {money(balance.after, balance.currency)}"
    if balance.after < 0:
        missing = money(-balance.after, balance.currency)
        return f"{money(balance.balance, balance.currency)}, not sufficient. Next: top up {missing}"
    if balance.until is None:
        return f"{after}; covers every renewal of the next three years"
    return f"{after}; lasts until {balance.until:%Y-%m-%d}, when {balance.what} renews"


def _rows(found: "CostReport") -> list[tuple[object, ...]]:
    """The changes; what stays as it is is in the sums only."""
    return [
        (
            line.action,
            line.kind.replace("_", " "),
            line.name,
            money(line.charged, line.currency),
            money(line.monthly_after, line.currency),
            "not known" if line.difference is None else f"{line.difference:+.2f}",
            money(line.refunded, line.currency) if line.refunded is None or line.refunded else "",
            "; ".join(line.notes),
        )
        for line in found.lines
        if line.is_change and not _is_free(line)
    ]


def _is_free(line: "CostLine") -> bool:
    amounts = (line.charged, line.refunded, line.monthly_before, line.monthly_after)
    return all(amount is not None and not amount for amount in amounts) and line.action != "take over"
