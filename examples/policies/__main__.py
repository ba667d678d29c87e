"""A policy pack: price per month, tariffs, protection, deletions, paid time.

    pulumi preview --policy-pack policies --policy-pack-config policies/config.json

It asks the account with HOSTING_API_KEY, as the program does. A test key is enough.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError
from rules import (
    Account,
    Declared,
    Owned,
    Tariff,
    allowed_tariff,
    most_per_month,
    no_deletion_without_a_label,
    paid_time_covered,
    protected_server,
)

from pulumi_hosting import Client

LABEL = "may be deleted"
"""What the notes of a server say that a run may delete."""


@cache
def account() -> Account:
    """One look for each preview or update."""
    with Client() as client:
        tariffs = [
            Tariff(one.id, one.name, one.price_monthly, one.extra_ip_price_monthly or Decimal(0))
            for one in client.catalog.tariffs()
        ]
        servers = [Owned(one.name or "", one.notes or "") for one in client.servers.list() if not one.is_gone]
    return Account(tuple(tariffs), tuple(servers))


def declared(one: Any) -> Declared:
    """A resource as the policy SDK shows it. The kind of the dynamic form stands behind its provider's."""
    kind = one.resource_type.rpartition(":")[2] if "hosting" in one.resource_type else ""
    return Declared(kind, one.name, known(one.props), bool(one.opts.protect))


def known(props: Mapping[str, Any]) -> dict[str, Any]:
    """Without the values that only the update will know: reading one ends the policy."""
    found = {}
    for name in props:
        with suppress(UnknownValueError):
            found[name] = props[name]
    return found


def report_all(report: ReportViolation, found: Iterable[str]) -> None:
    for sentence in found:
        report(sentence, None)


def price(args: StackValidationArgs, report: ReportViolation) -> None:
    amount = Decimal(str(args.get_config().get("amount", "1000.00")))
    report_all(report, most_per_month([*map(declared, args.resources)], account(), amount))


def tariffs(args: ResourceValidationArgs, report: ReportViolation) -> None:
    report_all(report, allowed_tariff(declared(args), account(), args.get_config().get("names") or ()))


def protection(args: ResourceValidationArgs, report: ReportViolation) -> None:
    report_all(report, protected_server(declared(args), LABEL))


def deletions(args: StackValidationArgs, report: ReportViolation) -> None:
    prefix = args.get_config().get("prefix")
    if prefix is not None:
        found = no_deletion_without_a_label(map(declared, args.resources), account(), prefix, LABEL)
        report_all(report, found)


def paid_time(args: ResourceValidationArgs, report: ReportViolation) -> None:
    report_all(report, paid_time_covered(declared(args)))


PolicyPack(
    "hosting",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[
        StackValidationPolicy(
            name="price-per-month",
            description="Servers and addresses cost at most `amount` a month.",
            validate=price,
            config_schema=PolicyConfigSchema({"amount": {"type": "string", "pattern": r"^\d+(\.\d+)?$"}}),
        ),
        ResourceValidationPolicy(
            name="tariffs",
            description="A server has one of the tariffs in `names`.",
            validate=tariffs,
            config_schema=PolicyConfigSchema({"names": {"type": "array", "items": {"type": "string"}}}),
        ),
        ResourceValidationPolicy(
            name="protect-servers",
            description="A server is protected, or its notes allow its deletion.",
            validate=protection,
        ),
        StackValidationPolicy(
            name="no-deletion-without-a-label",
            description="Servers named `prefix`… are declared, or their notes allow their deletion.",
            validate=deletions,
            config_schema=PolicyConfigSchema({"prefix": {"type": "string"}}),
        ),
        ResourceValidationPolicy(
            name="paid-time-covered",
            description="Servers and domains are kept paid.",
            validate=paid_time,
        ),
    ],
)
