"""Compares an emulator's account with what a tool manages.

What exists and is billed must be in a state, what is in a state must exist, and every movement of money must
have a reason. It costs two calls of the control interface (objects, ledger). Run it after a step that ended
normally::

    account = AccountCheck(Control(emulator.control_url))
    problems = account.check(ManagedObjects.of_stack(stack.export()), printed=run.output)
    assert problems == []

Keep one :class:`AccountCheck` for the steps of a test: what an earlier step managed explains what a later one
released.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.rehearsal.managed_objects import (
    DOMAIN,
    PTR,
    SERVER,
    SERVER_IP,
    SSH_KEY,
    WEBHOOK,
    ManagedObject,
    ManagedObjects,
)
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.text import without_secrets

_TOOL_KEY = re.compile(r"iac\d+-")
"""How the tool's idempotency keys begin: a charge under such a key was the tool's own purchase."""

_PURCHASES = ("create_server", "add_server_ip", "register_domain", "transfer_domain")
_SERVICE = ("billing", "control")  # the service renews or corrects something
_ORDER_ENDED = ("active", "cancelled", "failed")
# Where the control interface does not list the objects of a kind under its plural.
_TABLES = {WEBHOOK: "subscriptions"}
_NEVER_HELD = ", which is not on the account and was never in a state"
_NOT_REFUNDED = ", which is gone, was not refunded"
_NO_SERVER = ("cancelled", "terminated")
_NO_DOMAIN = ("cancelled", "terminated", "transferred_out")


class AccountCheck:
    """The account of one emulator, checked step after step. ``control``: called as ``control("GET",
    "/objects")``.

    ``allowed``: ids (``20001``, ``20001/30003``) of objects that may be in no state and may be charged for:
    adopted by another tool, retained on purpose, existing before. An object that the tool manages is not
    allowed any more.
    """

    def __init__(self, control: Callable[..., Any], allowed: Iterable[object] = ()) -> None:
        self.control = control
        self.allowed = {str(id) for id in allowed}
        self._known: dict[tuple[str, str], ManagedObject] = {}
        self._servers: dict[int, JsonObject] = {}
        self._settled: set[int] = set()
        self._staying: set[str] = set()

    def check(self, managed: ManagedObjects, *, printed: str = "") -> list[str]:
        """The problems, one sentence each; empty when the account holds exactly what is ``managed``.

        ``printed``: the output of the step. A domain in no state is no problem if its auto-renew is off and
        the output says that it stays; an SSH key if the output says that it stays.
        """
        self._look = _Look(self.control("GET", "/objects"), self.control("GET", "/ledger"), managed)
        self.allowed |= {item.id for item in self._known.values() if item.is_retained}
        self._known |= {(item.kind, item.id): item for item in managed}
        self.allowed -= {
            id for item in managed if item.kind != PTR for id in (item.id, item.id.rpartition("/")[2])
        }
        self._servers |= self._look.servers
        problems = [*self._unmanaged(printed), *self._missing(), *self._unexplained()]
        return sorted(dict.fromkeys(problems))

    def empty(self, *, printed: str = "") -> list[str]:
        """What is left although nothing is managed any more."""
        return self.check(ManagedObjects(), printed=printed)

    def remaining(self) -> list[str]:
        """What is alive on the account, whoever manages it: ``domain example.com``, ``ssh key laptop``."""
        look = _Look(self.control("GET", "/objects"), [], ManagedObjects())
        servers = [row for row in look.servers.values() if row["status"] not in _NO_SERVER]
        free = [(kind.replace("_", " "), row) for kind, rows in look.free.items() for row in rows.values()]
        rows = [*((SERVER, row) for row in servers), *((DOMAIN, row) for row in look.domains.values()), *free]
        return [f"{kind} {_label(row)}" for kind, row in rows]

    # --- on the account, and in no state

    def _unmanaged(self, printed: str) -> Iterator[str]:
        yield from self._servers_and_orders()
        for server_id, server in self._look.servers.items():
            yield from self._addresses(server_id, server)
        for domain in self._look.domains.values():
            yield from self._domain(domain, printed)
        for kind, rows in self._look.free.items():
            for id, row in rows.items():
                if kind == SSH_KEY and f"({id}) stays" in printed:
                    self._staying.add(f"{kind} {id}")  # it was adopted: destroy keeps it
                if not (self._accounted(kind, id) or f"{kind} {id}" in self._staying):
                    title = kind.replace("_", " ")
                    yield f"{title} {id} ({_label(row)}, 0.00 per month) is live and in no state"

    def _servers_and_orders(self) -> Iterator[str]:
        for id, server in self._look.servers.items():
            if not self._accounted(SERVER, id):
                word = "sandbox server" if server["is_sandbox"] else "server"
                yield f"{word} {id} ({server['name']}, {_price(server)}) is live and in no state"
        for order in self._look.pending_orders:
            if not (self._look.holds(SERVER, f"order:{order['id']}") or self._may(order["id"])):
                yield (
                    f"order {order['id']} (server {order['server_name']}, {order['amount']} paid) is being "
                    "delivered and in no state"
                )

    def _addresses(self, server_id: int, server: JsonObject) -> Iterator[str]:
        if server["is_sandbox"] or not self._accounted(SERVER, server_id):
            return  # named with its server, whose price includes it
        pending, unheld = f"pending:{server_id}/", []
        on_their_way = sum(
            item.kind == SERVER_IP and item.id.startswith(pending) for item in self._look.managed
        )
        for address in self._look.addresses_of(server_id):
            id = f"{server_id}/{address['id']}"
            if address["bought"] and not self._accounted(SERVER_IP, id, address["id"]):
                unheld.append(address)
            may_point = self._accounted(PTR, id, address["id"], server_id) or (PTR, id) in self._outside
            if address["ptr"] and not may_point:
                yield (
                    f"reverse DNS {address['ptr']} of {address['address']} on server {server_id} (0.00 per "
                    "month) is set and in no state"
                )
        for address in unheld[: max(0, len(unheld) + server["addresses_coming"] - on_their_way)]:
            yield (
                f"address {server_id}/{address['id']} ({address['address']} of server {server['name']}, "
                f"{address['price_monthly']} per month) is live and in no state"
            )
        if server["addresses_coming"] > on_their_way:
            yield f"server {server_id} ({server['name']}) gets an address that is paid and in no state"

    def _domain(self, domain: JsonObject, printed: str) -> Iterator[str]:
        id, name = str(domain["id"]), domain["name"]
        if self._look.holds(DOMAIN, id) or self._look.holds(DOMAIN, name) or self._may(id, name):
            self._staying.discard(id)
            return
        if id not in self._staying and name in printed and "stays" in printed and not domain["auto_renew"]:
            self._staying.add(id)
        if domain["auto_renew"]:
            yield f"domain {id} ({name}) is live and in no state, and renews itself"
        elif id not in self._staying:
            yield f"domain {id} ({name}) is live and in no state, and nothing said that it stays"

    # --- in a state, and not on the account

    def _missing(self) -> Iterator[str]:
        for item in self._look.managed:
            # With a test key only servers can be read.
            simulated = item.mode == "test" and item.kind != SERVER
            if simulated or item.is_leaving or (item.kind, item.id) in self._outside or self._may(item.id):
                continue
            server = item.id.removeprefix("pending:").partition("/")[0]
            if item.kind in (SERVER_IP, PTR) and (SERVER, server) in self._outside:
                continue
            if not self._look.lives(item):
                yield f"{item} is in a state and not on the account"

    # --- money

    def _unexplained(self) -> Iterator[str]:
        by_invoice = defaultdict[object, list[JsonObject]](list)
        for movement in self._look.ledger:
            if movement["type"] in ("payment", "refund"):
                by_invoice[movement["invoice_id"] or f"movement {movement['id']}"].append(movement)
        for rows in by_invoice.values():
            charges = [row for row in rows if row["direction"] == "debit"]
            refunds = [row for row in rows if row["direction"] == "credit"]
            charged, refunded = _sum(charges), _sum(refunds)
            if refunded > charged and refunds[-1]["operation"] not in _SERVICE:
                yield f"refund of {refunded} for {_subject(refunds[-1])} that no charge of {charged} explains"
            for row in charges:
                if row["id"] not in self._settled and (problem := self._charge(row, charged - refunded)):
                    yield f"charge of {row['amount']} for {problem}"
            for row in refunds:
                if row["id"] not in self._settled:
                    yield from self._refund(row, charges)

    def _charge(self, row: JsonObject, paid: Decimal) -> str | None:
        """What is wrong with a charge, said of its subject. ``paid``: the charge less the refunds."""
        operation, id = row["operation"], row["object_id"]
        if operation in _SERVICE:
            return None
        if operation not in _PURCHASES:
            renewed = self._known.get((operation.removeprefix("renew_"), str(id)))
            is_kept = renewed is not None and renewed.is_kept_paid
            if is_kept or operation in self._look.managed.operations or self._may(id, row["invoice_id"]):
                self._settled.add(row["id"])
                return None
            return f"{_subject(row)} that nothing explains"
        if not paid:
            return None
        invoice = self._look.invoices.get(row["invoice_id"], {})
        if operation == "add_server_ip":
            return self._address_charge(row, invoice, paid)
        if operation == "create_server":
            return self._server_charge(row, invoice, paid)
        is_there = id in self._look.domains or (DOMAIN, str(id)) in self._outside
        return None if is_there or self._is_ours(row, DOMAIN, id) else f"{_subject(row)}{_NEVER_HELD}"

    def _server_charge(self, row: JsonObject, invoice: JsonObject, paid: Decimal) -> str | None:
        order = self._look.orders.get(row["invoice_id"])
        id = row["object_id"] or invoice.get("server_id") or (order or {}).get("server_id")
        if id in self._look.servers or (order and order["status"] not in _ORDER_ENDED):
            return None
        if id is None:
            failed = f"order {row['invoice_id']}, which failed, was not refunded"
            return None if self._may(row["invoice_id"]) else failed
        if not self._is_ours(row, SERVER, id):
            return f"server {id}{_NEVER_HELD}"
        return f"server {id}{_NOT_REFUNDED}" if self._refund_is_due(id, invoice, row, paid) else None

    def _address_charge(self, row: JsonObject, invoice: JsonObject, paid: Decimal) -> str | None:
        id = row["object_id"]
        subject, server = f"an address of server {id}", self._look.servers.get(id)
        arrived = any(address["invoice_id"] == row["invoice_id"] for address in self._look.addresses)
        if arrived or (server and server["addresses_coming"]):
            return None
        if not self._is_ours(row, SERVER, id):
            return f"{subject}, which was never in a state"
        if server or (SERVER, str(id)) in self._outside:
            # Released alone, or with a server deleted outside: neither is refunded.
            self._settled.add(row["id"])
        elif not invoice.get("refundable", True):
            for item in self._known.values():
                if item.kind == SERVER_IP and item.id.startswith(f"{id}/") and item.leaves_with_server:
                    return f"{subject}: released before its server, so not refunded"
        elif self._refund_is_due(id, invoice, row, paid):
            return f"{subject}{_NOT_REFUNDED}"
        return None

    def _refund(self, row: JsonObject, charges: list[JsonObject]) -> Iterator[str]:
        if row["operation"] != "delete_server":
            return  # of a purchase that failed: the sum of its invoice was compared
        id = row["object_id"]
        if id in self._look.servers:
            yield f"refund of {row['amount']} for server {id}, which is live"
        elif not any(self._is_ours(charge, SERVER, id) for charge in charges):
            yield (
                f"refund of {row['amount']} for server {id}, which was never in a state: it was "
                "not the tool's to delete"
            )

    def _refund_is_due(self, id: int, invoice: JsonObject, row: JsonObject, paid: Decimal) -> bool:
        """Whether more of this invoice should have been refunded when server ``id`` was deleted. ``row``: its
        charge; ``paid``: the charge less the refunds.
        """
        if (SERVER, str(id)) in self._outside:
            return False
        server = self._servers.get(id)
        if server is not None:
            tariff: JsonObject = self._look.tariffs.get(server["tariff_id"], {})
            if tariff.get("non_refundable") or server["blocked"] or server["is_test"]:
                return False
        start, end = invoice.get("period_start"), invoice.get("period_end")
        if start is None or end is None or not invoice.get("refundable", True):
            return False
        left = Decimal(str(max(0.0, end - max(self._look.now, start)))) / Decimal(str(end - start))
        charged = abs(Decimal(str(row["amount"])))
        return charged * left - (charged - paid) >= Decimal("0.02")

    # --- what is known

    @property
    def _outside(self) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = getattr(self.control, "outside", set())
        return found

    def _may(self, *ids: object) -> bool:
        return any(str(id) in self.allowed for id in ids)

    def _accounted(self, kind: str, id: object, *others: object) -> bool:
        """Whether the object is in a state, or may be in none. ``others``: what else it is allowed by."""
        return self._look.holds(kind, str(id)) or self._may(id, *others)

    def _is_ours(self, row: JsonObject, kind: str, id: object) -> bool:
        """Whether the tool bought the object, or some state has ever held it."""
        bought = bool(_TOOL_KEY.match(row["idempotency_key"] or ""))
        ordered = kind == SERVER and (SERVER, f"order:{row['invoice_id']}") in self._known
        return bought or ordered or (kind, str(id)) in self._known or self._may(id)


def check(
    control: Callable[..., Any], managed: ManagedObjects, *, allowed: Iterable[object] = (), printed: str = ""
) -> list[str]:
    """One check without earlier steps: see :meth:`AccountCheck.check`."""
    return AccountCheck(control, allowed).check(managed, printed=printed)


class _Look:
    """The account at one moment, and what is managed."""

    def __init__(self, objects: JsonObject, ledger: Iterable[JsonObject], managed: ManagedObjects) -> None:
        account = objects["accounts"][0]["id"]
        # Servers of every account: a tool may manage some of a second one.
        self.everywhere = {str(row["id"]) for row in objects.get("servers", ())}

        def table(kind: str) -> dict[int, JsonObject]:
            rows = objects.get(kind, ())
            return {row["id"]: row for row in rows if row.get("account_id", account) == account}

        self.managed = managed
        self.servers = table("servers")
        self.orders, self.invoices, self.tariffs = map(table, ("orders", "invoices", "tariffs"))
        self.domains = {id: row for id, row in table("domains").items() if row["status"] not in _NO_DOMAIN}
        self.free = {
            kind: table(_TABLES.get(kind, f"{kind}s"))
            for kind in RESOURCES
            if kind not in (SERVER, SERVER_IP, PTR, DOMAIN)
        }
        """Objects by kind that cost nothing and need no special treatment."""
        self.addresses = list(objects.get("addresses", ()))
        self.ledger = [row for row in ledger if row.get("account_id", account) == account]
        paid = {row["invoice_id"] for row in self.ledger if row["direction"] == "debit"}
        going_on = [row for row in self.orders.values() if row["status"] not in _ORDER_ENDED]
        self.pending_orders = [row for row in going_on if row["id"] in paid]
        self.now = max((key["last_used_at"] or 0.0 for key in objects.get("keys", ())), default=0.0)
        self._held = {(item.kind, self._current(item)) for item in managed}

    def _current(self, item: ManagedObject) -> str:
        """The id of the object; for an order that has become a server, the server's."""
        if item.kind == SERVER and item.id.startswith("order:"):
            number = item.id.removeprefix("order:")
            order = self.orders.get(int(number)) if number.isdigit() else None
            if order and order["server_id"]:
                return str(order["server_id"])
        return item.id

    def holds(self, kind: str, id: str) -> bool:
        return (kind, id) in self._held

    def addresses_of(self, server_id: int) -> list[JsonObject]:
        return [address for address in self.addresses if address["server_id"] == server_id]

    def lives(self, item: ManagedObject) -> bool:
        id = self._current(item)
        if item.kind == SERVER:
            return id in self.everywhere or any(f"order:{row['id']}" == id for row in self.pending_orders)
        if item.kind in (SERVER_IP, PTR):
            if id.startswith("pending:"):
                return id.removeprefix("pending:").partition("/")[0] in self.everywhere
            found = [row for row in self.addresses if f"{row['server_id']}/{row['id']}" == id]
            return bool(found) and (item.kind == SERVER_IP or bool(found[0]["ptr"]))
        if item.kind == DOMAIN:
            return any(id in (str(row["id"]), row["name"]) for row in self.domains.values())
        return id in map(str, self.free[item.kind])


def _sum(rows: Iterable[JsonObject]) -> Decimal:
    return sum((abs(Decimal(str(row["amount"]))) for row in rows), Decimal(0))


def _subject(row: JsonObject) -> str:
    return (
        f"{row['operation']} of object {row['object_id']} (invoice {row['invoice_id']}, key "
        f"{row['idempotency_key'] or 'none'})"
    )


def _label(row: JsonObject) -> str:
    return str(row.get("name") or without_secrets(str(row.get("url"))))


def _price(server: JsonObject) -> str:
    billing = server["billing"]
    amount, currency = Decimal(billing["recurring_amount"]), billing["currency"]
    if billing["cycle"] == "hourly":
        return f"{amount} {currency} per hour"
    return f"{(amount / (billing['months'] or 1)).quantize(Decimal('0.01'))} {currency} per month"
