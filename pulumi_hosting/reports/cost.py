"""What a change costs: charged now, per month afterwards, the difference, what is refunded, and how long the
balance lasts then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path

from pulumi_hosting.planning.paid_time import PaidTime, months_after
from pulumi_hosting.rehearsal.facts import JsonObject, ReportFacts
from pulumi_hosting.rehearsal.managed_objects import DOMAIN, SERVER, SERVER_IP
from pulumi_hosting.reports.account_objects import AccountPrices, recorded_monthly
from pulumi_hosting.reports.dangers import dangers
from pulumi_hosting.reports.report import Asking, CannotAnswer, Points, Report, Section, Summary, Table, money
from pulumi_hosting.reports.run_results import Planned, PlannedChange, decimal_of, planned
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.session.prepaid import Prepaid

NOTHING = Decimal("0.00")
_NEW = ("create", "replace")
_LEAVING = ("replace", "delete")


@dataclass(frozen=True, slots=True)
class CostLine(ReportFacts):
    """One object of the preview. Amounts are in ``currency``; None: not known, and ``notes`` say why.

    - ``charged``: what the change charges now. ``refunded``: what it credits now.
    - ``monthly_before``, ``monthly_after``: its price per month by the price list; a domain's price per year
      is divided by twelve.
    """

    JSON = (
        *("kind", "name", "id", "action", "charged", "refunded"),
        *("monthly_before", "monthly_after", "monthly_difference", "currency", "notes"),
    )

    kind: str
    name: str
    action: str
    charged: Decimal | None = NOTHING
    refunded: Decimal | None = NOTHING
    monthly_before: Decimal | None = NOTHING
    monthly_after: Decimal | None = NOTHING
    currency: str | None = None
    notes: tuple[str, ...] = ()
    id: str | None = None

    @property
    def monthly_difference(self) -> Decimal | None:
        """How much more it costs per month."""
        if self.monthly_before is None or self.monthly_after is None:
            return None
        return self.monthly_after - self.monthly_before

    @property
    def amounts(self) -> tuple[Decimal | None, ...]:
        return self.charged, self.refunded, self.monthly_before, self.monthly_after

    @property
    def is_change(self) -> bool:
        return self.action != "keep"


@dataclass(frozen=True, slots=True)
class Totals(ReportFacts):
    """The sums of one currency, of what is known."""

    JSON = ("charged", "refunded", "monthly_before", "monthly_after", "monthly_difference")

    charged: Decimal = NOTHING
    refunded: Decimal = NOTHING
    monthly_before: Decimal = NOTHING
    monthly_after: Decimal = NOTHING

    @property
    def monthly_difference(self) -> Decimal:
        return self.monthly_after - self.monthly_before


@dataclass(frozen=True, slots=True)
class BalanceForecast(ReportFacts):
    """The balance, and ``after`` the change. ``lasts_until``: when the first renewal falls due that it does
    not cover (``first_uncovered``); None where it covers all within three years. Negative ``after``: it does
    not cover the change.
    """

    JSON = ("amount", "after", "currency", "sufficient", "lasts_until", "first_uncovered")

    amount: Decimal
    after: Decimal
    currency: str
    lasts_until: datetime | None
    first_uncovered: str | None

    @property
    def sufficient(self) -> bool:
        return self.after >= 0


@dataclass(frozen=True, slots=True)
class CostReport(ReportFacts):
    """``dangers``: what a reader must not miss, one sentence each. ``not_known``: what is not in the sums.
    ``ending``: a line for each object of the
    preview that ends soon and is not covered. ``unchanged_not_shown``: so many unchanged resources are not
    shown, so the sums per month are of the others."""

    JSON = ("dangers", "totals", "balance", "not_known", "ending", "unchanged_not_shown", "resources")

    resources: tuple[CostLine, ...]
    totals: Mapping[str, Totals]
    balance: BalanceForecast | None
    not_known: tuple[str, ...]
    ending: tuple[str, ...] = ()
    unchanged_not_shown: int = 0
    dangers: tuple[str, ...] = ()


def cost(planned: Planned, prices: AccountPrices) -> CostReport:
    """The cost of what is ``planned``. ``prices``: the account to ask for what the preview does not say."""
    found = prices.paid_time()
    lines = _in_one_currency([_line(change, prices) for change in planned.changes], found)
    totals = _totals(lines)
    renewed = {(line.kind, str(line.id)) for line in lines if line.action == "renew"}  # this run pays it
    both = zip(planned.changes, lines, strict=True)
    kept = {(line.kind, str(line.id)) for change, line in both if change.after.get("keep_paid")}
    balance = None
    if found is not None:
        balance = _forecast(planned.changes, lines, totals, found.kept_paid(kept - renewed))
        found = found.kept_paid(kept | renewed)
    staying = {(line.kind, line.id) for line in lines if line.action not in _LEAVING}
    ending = [event for event in found.uncovered() if event.what.key in staying] if found else []
    unknown = [_unknown(line) for line in lines if line.is_change and _gaps(line)]
    if balance is None:
        unknown.append(f"how long the balance lasts: {'; '.join(prices.refusals)}")
    if planned.hidden:
        unknown.append(
            f"what {planned.hidden} unchanged resources cost per month: the preview does not show them. "
            "Next: pulumi preview --json --show-sames"
        )
    warnings = tuple(filter(None, map(found.warning, ending))) if found else ()
    return CostReport(lines, totals, balance, tuple(unknown), warnings, planned.hidden, dangers(planned))


# --- one object


def _line(change: PlannedChange, prices: AccountPrices) -> CostLine:
    free = CostLine(change.kind, change.name, change.action, currency=change.currency)
    notes = [change.note]
    if change.action == "pay":
        return replace(free, charged=change.charge, notes=tuple(filter(None, notes)))
    if not isinstance(RESOURCES.get(change.kind), Priced):
        return free
    before, recorded = _before(change, prices)
    charged: Decimal | None = NOTHING
    after, currency = before, change.currency or recorded.get("currency")
    if change.action in _NEW:
        charged, quoted = _charged(change, prices)
        after, listed, how = _monthly_of_new(change, charged, prices)
        currency = currency or quoted or listed
        notes.append(how)
        before = NOTHING if change.action == "create" else before
    elif change.action == "renew":
        charged = change.charge
    elif change.action == "delete":
        after = NOTHING
    elif change.action in ("import", "take over"):
        after = before = _monthly(change.kind, change.after, prices)[0]
    refunded, why = _refunded(change, recorded)
    notes.append(why)
    return replace(
        free,
        charged=charged,
        refunded=refunded,
        monthly_before=before,
        monthly_after=after,
        currency=currency,
        notes=tuple(filter(None, notes)),
        id=recorded.get("id"),
    )


def _before(change: PlannedChange, prices: AccountPrices) -> tuple[Decimal | None, JsonObject]:
    """The price per month so far, and the object as the account has it, where that was asked."""
    recorded: JsonObject = {}
    if change.action in ("replace", "delete") and change.kind == SERVER:
        id, name = change.before.get("id"), change.before.get("name")
        found = prices.server(str(id)) if id else prices.server_named(str(name)) if name else None
        recorded = found or {}
    elif change.kind == SERVER and change.before.get("id") and not change.before.get("price_monthly"):
        recorded = prices.of_servers.get(str(change.before["id"]), {})
    values = {**change.before, **{name: value for name, value in recorded.items() if value is not None}}
    if change.kind == DOMAIN and values.get("name"):
        return _monthly(DOMAIN, values, prices)[0], values
    return recorded_monthly(values), values


def _monthly(kind: str, values: JsonObject, prices: AccountPrices) -> tuple[Decimal | None, str | None]:
    """What it records itself, else by the price list, and the currency of that."""
    recorded = recorded_monthly(values)
    return (recorded, None) if recorded is not None else prices.monthly(kind, values) or (None, None)


def _charged(change: PlannedChange, prices: AccountPrices) -> tuple[Decimal | None, str | None]:
    if change.charge is not None or change.note:
        return change.charge, change.currency
    found = prices.charge(change.kind, change.after)
    return (found.balance, found.currency) if found else (None, None)


def _monthly_of_new(
    change: PlannedChange, charged: Decimal | None, prices: AccountPrices
) -> tuple[Decimal | None, str | None, str]:
    """The price per month of what is made, its currency, and how it is known where that is no price list."""
    monthly, currency = _monthly(change.kind, change.after, prices)
    if monthly is not None:
        return monthly, currency, ""
    months = _paid_months(change)
    if charged is None or months is None:
        return None, None, ""
    return charged / months, None, "per month: of the first payment"


def _paid_months(change: PlannedChange) -> int | None:
    """The months that the first payment is for; None where it says nothing of the later ones."""
    values = change.after
    if values.get("promo_code") or values.get("hours") or values.get("billing_cycle") == "hourly":
        return None
    if change.kind == SERVER:
        return int(values.get("months") or 1)
    return 12 * int(values.get("years") or 1) if change.kind == DOMAIN else None


def _refunded(change: PlannedChange, recorded: JsonObject) -> tuple[Decimal | None, str]:
    """What the deletion credits, and what else a person should know of it."""
    if change.action not in ("replace", "delete"):
        return NOTHING, ""
    if change.kind == SERVER:
        return decimal_of((recorded.get("refund_quote") or {}).get("amount")), ""
    if change.kind == SERVER_IP:
        return NOTHING, "refunded only together with its server"
    until = str(recorded.get("expires_at") or "")[:10]
    return NOTHING, f"stays until it expires{f' on {until}' if until else ''}, and does not renew itself"


# --- sums


def _in_one_currency(lines: Sequence[CostLine], balance: PaidTime | None) -> tuple[CostLine, ...]:
    """The lines with the currency of the account where they name none: an address that was taken over has a
    price, and no payment that says in what (section 1.3)."""
    currency = balance.currency if balance else next((line.currency for line in lines if line.currency), None)
    return tuple(replace(line, currency=line.currency or currency) for line in lines)


def _totals(lines: Iterable[CostLine]) -> dict[str, Totals]:
    sums: dict[str, Totals] = {}
    for line in lines:
        if not any(line.amounts):
            continue
        # What has no known counterpart would falsify the difference.
        usable = line.amounts if line.monthly_difference is not None else (*line.amounts[:2], None, None)
        old, known = sums.get(line.currency or "", Totals()), (amount or NOTHING for amount in usable)
        sums[line.currency or ""] = Totals(*map(add, astuple(old), known))
    return dict(sorted(sums.items()))


def _gaps(line: CostLine) -> list[str]:
    names = {"charge now": line.charged, "refund": line.refunded, "price per month": line.monthly_difference}
    return [name for name, amount in names.items() if amount is None]


def _unknown(line: CostLine) -> str:
    reasons = [note for note in line.notes if "not known" in note]
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"{line.kind.replace('_', ' ')} {line.name}: {' and '.join(_gaps(line))}{why}"


def _forecast(
    changes: Sequence[PlannedChange], lines: Sequence[CostLine], totals: Mapping[str, Totals], found: PaidTime
) -> BalanceForecast | None:
    if found.balance is None or found.currency is None:
        return None
    sums = totals.get(found.currency, Totals())
    after = found.balance - sums.charged + sums.refunded
    gone = {(line.kind, line.id) for line in lines if line.action in _LEAVING}
    prepaid = [what for what in found.objects if what.key not in gone]
    for change, line in zip(changes, lines, strict=True):
        renews = change.after.get("auto_renew", change.kind != DOMAIN)
        months = _paid_months(change) or 1
        if change.action in _NEW and renews and line.monthly_after and line.currency == found.currency:
            kind, due = change.kind.replace("_", " "), months_after(found.now, months)
            prepaid.append(Prepaid(kind, "", change.name, due, line.monthly_after * months, months, True))
    if after < 0:
        return BalanceForecast(found.balance, after, found.currency, found.now, "this change")
    first = replace(found, objects=tuple(prepaid), balance=after).first_short
    until, uncovered = (first.at, f"{first.what.kind} {first.what.name}") if first else (None, None)
    return BalanceForecast(found.balance, after, found.currency, until, uncovered)


# --- the report

HEADERS = ("ACTION", "KIND", "NAME", "NOW", "PER MONTH", "DIFFERENCE", "REFUND", "NOTE")


def run(asking: Asking, previews: tuple[Path, ...]) -> Report:
    plan = reduce(add, map(planned, previews))
    try:
        with asking() as (request, step):
            step(1, None, "asking the account for prices")
            prices = AccountPrices(request)
            found, warnings = cost(plan, prices), [*prices.refusals]
    except CannotAnswer as error:  # no key: what the preview says is left
        found, warnings = cost(plan, AccountPrices(None, str(error))), []
    return Report(found.facts(), [*_sections(found)], warnings)


def _sections(found: CostReport) -> Iterator[Section]:
    if found.dangers:
        yield Points("danger", "**Danger**", found.dangers, urgent=True)
    if found.ending:
        yield Points("ends", "**Ends soon, and is not paid for**", found.ending, urgent=True)
    if rows := _rows(found):
        yield Table(HEADERS, rows, foreign=(2, 7))
        yield ""
    yield Summary("cost", _summary(found))
    if found.balance is not None:
        yield Summary("balance", _balance(found.balance))
    if found.not_known:
        yield Points("not known", "Not known, and not in the sums", found.not_known)


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
        if line.is_change
        and (line.action == "take over" or any(amount != 0 for amount in line.amounts))  # else it is free
    ]
