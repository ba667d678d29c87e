"""The rules, as functions of what a program declares, of their settings, and of the account.

Each yields one sentence for each violation. They know nothing of Pulumi's policy SDK: ``__main__.py`` hands
them over to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Declared:
    """A resource of the program. ``kind``: ``Server`` of ``hosting:index:Server`` and of its dynamic form."""

    kind: str
    name: str
    props: Mapping[str, Any]
    protect: bool = False


@dataclass(frozen=True)
class Tariff:
    """What a rule needs to know of a tariff of the price list."""

    id: int
    name: str
    price_monthly: Decimal
    extra_ip_price_monthly: Decimal = Decimal(0)


@dataclass(frozen=True)
class Owned:
    """A server of the account: its name and its notes."""

    name: str
    notes: str


@dataclass(frozen=True)
class Account:
    """What the account has, and what things cost there."""

    tariffs: tuple[Tariff, ...] = ()
    servers: tuple[Owned, ...] = field(default=())

    def tariffs_of(self, props: Mapping[str, Any]) -> list[Tariff]:
        """The tariffs that a server declares, the most expensive first: any of a list may be taken."""
        ids = [props.get("tariffId"), *props.get("tariffIds", ())]
        names = [props.get("tariff"), *props.get("tariffs", ())]
        found = [one for one in self.tariffs if one.id in ids or one.name in names]
        return sorted(found, key=lambda one: one.price_monthly, reverse=True)


def most_per_month(declared: Iterable[Declared], account: Account, amount: Decimal) -> Iterator[str]:
    """All servers and their addresses together cost at most ``amount`` a month, by the price list."""
    resources = [*declared]
    tariffs = [account.tariffs_of(one.props) for one in resources if one.kind == "Server"]
    known = [first for first, *_ in filter(None, tariffs)]
    addresses = sum(one.kind == "ServerIp" for one in resources)
    # The server of an address may not be known in a preview: the highest price counts.
    address = max((tariff.extra_ip_price_monthly for tariff in known), default=Decimal(0))
    total = sum((tariff.price_monthly for tariff in known), addresses * address)
    if total > amount:
        yield f"the servers and addresses cost {total} a month, more than {amount}"


def allowed_tariff(one: Declared, account: Account, allowed: Iterable[str]) -> Iterator[str]:
    """A server has one of these tariffs."""
    names = [*allowed]
    for tariff in account.tariffs_of(one.props) if one.kind == "Server" and names else ():
        if tariff.name not in names:
            yield f"tariff {tariff.name} is not one of {', '.join(names)}"


def protected_server(one: Declared, label: str) -> Iterator[str]:
    """A server is protected, or its notes say that it may be deleted."""
    if one.kind == "Server" and not one.protect and label not in str(one.props.get("notes") or ""):
        yield f"set protect=True, or write {label!r} into its notes"


def no_deletion_without_a_label(
    declared: Iterable[Declared], account: Account, prefix: str, label: str
) -> Iterator[str]:
    """Whatever the account has under this prefix is declared, or its notes say that it may be deleted."""
    names = {str(one.props.get("name") or one.name) for one in declared if one.kind == "Server"}
    for server in account.servers:
        if server.name.startswith(prefix) and server.name not in names and label not in server.notes:
            yield (
                f"server {server.name} is on the account and not in the program, so a run may delete it. "
                f"Next: write {label!r} into its notes and run up, then remove it"
            )


def paid_time_covered(one: Declared) -> Iterator[str]:
    """A server or domain renews itself, or each run keeps it paid."""
    if one.kind in ("Server", "Domain") and not (one.props.get("autoRenew") or one.props.get("keepPaid")):
        is_on_by_default = one.kind == "Server" and one.props.get("autoRenew") is None
        if not is_on_by_default:
            yield "it ends when its paid time is over: set auto_renew=True or keep_paid"
