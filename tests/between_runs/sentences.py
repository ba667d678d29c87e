"""What is said about charges, credits, creation, takeover, deletion and absence, compared with the account.

A line is cut into clauses. Each must fit a pattern of ``CLAIMS``, whose check compares it with objects and
ledger, or one of ``NEUTRAL``, which claim nothing of the kind. A pattern has to fit the whole clause.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.between_runs.cases import DAY, ONLY_LOOKING, REMOVING
from tests.between_runs.world import GONE, Look, Run, World

_PREFIX = re.compile(r"^(?:(?:warning|it|web|db): )+")
_BETWEEN = re.compile(r"; | — |\. |\.$")
_TABLES = {"": "servers", "domain": "domains", "server address": "addresses"}
_COMING = ("pending", "transfer_pending")
Row = Mapping[str, Any]


class Said:
    """One clause of a run, its named parts, and what the account shows before and after the run."""

    def __init__(self, world: World, run: Run, match: re.Match[str]) -> None:
        self.world, self.run, self.parts = world, run, match.groupdict()
        self.operation, self.after, self.before = world.purchase.operation, run.after, run.before

    def __getitem__(self, name: str) -> str:
        return self.parts.get(name) or ""

    def find(self, kind: str, look: Look) -> Row:
        """What lives of that id, else of that name; empty where there is nothing."""
        id = self["id"].rpartition("/")[2] or self["server"]
        by, value = ("id", id) if id else ("name", self["name"])
        rows = [row for row in look.objects[kind] if row.get("status") not in GONE]
        return next((row for row in rows if str(row[by]) == value), {})

    def status(self, kind: str, look: Look | None = None) -> str:
        return str(self.find(kind, look or self.after).get("status"))

    @property
    def kind(self) -> str:
        return "invoices" if self["order"] else _TABLES.get("" if self["server"] else self["kind"], "servers")

    def lives(self, look: Look | None = None) -> bool:
        return bool(self.find(self.kind, look or self.after))

    def is_coming(self, look: Look) -> bool:
        id = self["server"] or self["id"]
        return any(str(row["id"]) == id and row["addresses_coming"] for row in look.rows("servers"))

    def has_tag(self, look: Look) -> bool:
        return "[iac2:" in (self.find("servers", look).get("notes") or "")

    def moved(self, direction: str, look: Look | None = None, **having: Any) -> list[Row]:
        having["direction"] = direction
        rows = (look or self.after).ledger if look else self.run.moved
        return [row for row in rows if all(row[name] == value for name, value in having.items())]

    def was_charged(self) -> bool:
        """In this run."""
        having: dict[str, Any] = {"invoice_id": int(self["id"])} if self["id"] else {}
        return bool(self.moved("debit", amount=self["amount"], **having))

    def adds_up(self) -> bool:
        credits = [Decimal(row["amount"]) for row in self.moved("credit", operation="delete_server")]
        said = (Decimal(self["amount"]), Decimal(self["credit"]), self["balance"])
        return said == (self.run.charged, sum(credits), self.after.objects["accounts"][0]["balance"])

    def is_due(self) -> bool:
        row = self.find(self.kind, self.after)
        until = datetime.fromtimestamp(row.get("next_due_at") or row.get("expires_at") or 0, UTC)
        return f"{until:%Y-%m-%d}" == self["day"]

    def deletes(self) -> bool:
        """It is gone now, and was there or came during the run; what was credited for it is as said."""
        rows = self.moved("credit", operation="delete_server", object_id=int(self["id"]))
        credited = sum((Decimal(row["amount"]) for row in rows), Decimal(0))
        is_as_said = not self["credit"] or credited == Decimal(self["credit"])
        addresses = [str(row["id"]) for row in self.after.rows("addresses")]
        was_there = self.lives(self.before) or bool(rows)
        return was_there and not self.lives() and is_as_said and self["address"] not in addresses

    def orders_again(self) -> bool:
        """In this run, or in the next one that pays, where the program still declares it."""
        if self.run.command in REMOVING or self.run.failure is not None or self.run.debits():
            return True
        self.world.orders_again = self.run.command in ONLY_LOOKING
        return self.world.orders_again

    def takes_over(self) -> bool:
        """It is there; after a run that ended well the state has it."""
        if self["server"]:
            return self.is_coming(self.before) or self.is_coming(self.after)
        entry = self.world.stack.entries.get("it")
        is_held = self.run.failure is not None or self.run.command in ("preview", "check", "task")
        return self.lives() and (is_held or (entry is not None and entry.id == self["id"]))

    def is_of_account(self) -> bool:
        known = {str(row["id"]) for row in self.after.objects["accounts"]}
        row = self.find(self.kind, self.after)
        return str(row.get("account_id")) == self["account"] and self["other"] in known - {self["account"]}


def _paid(said: Said) -> bool:
    return said.status("invoices") == "paid"


def _was_paid(said: Said) -> bool:
    return _paid(said) or said.status("invoices", said.before) == "paid"


def _returned(said: Said) -> bool:
    if said["id"]:
        return bool(said.moved("credit", said.after, invoice_id=int(said["id"])))
    return bool(said.moved("credit", said.after, operation=said.operation))


def _address_paid(said: Said) -> bool:
    paid = {row["id"] for row in said.after.rows("invoices", status="paid")}
    rows = said.moved("debit", said.after, operation="add_server_ip", amount=said["amount"])
    return any(row["invoice_id"] in paid for row in rows)


def _address_coming(said: Said) -> bool:
    return said.is_coming(said.after)


def _address_not_there(said: Said) -> bool:
    """It may be coming, or another user has deleted it since."""
    return _address_coming(said) or not said.after.rows("addresses", bought=True)


def _address_was_coming(said: Said) -> bool:
    return said.is_coming(said.before) or _address_not_there(said)


def _address_there(said: Said) -> bool:
    return any(row["address"] == said["address"] for row in said.after.rows("addresses"))


def _domain_coming(said: Said) -> bool:
    """Or it is paid and not listed, as an order may be that the registrar has not confirmed."""
    paid = {row["id"] for row in said.after.rows("invoices", status="paid")}
    is_paid = any(row["invoice_id"] in paid for row in said.after.debits(said.operation))
    return said.status("domains") in _COMING or (is_paid and not said.find("domains", said.after))


def _domain_was_coming(said: Said) -> bool:
    return _domain_coming(said) or said.status("domains", said.before) in _COMING


def _domain_stays(said: Said) -> bool:
    return said.find("domains", said.after).get("auto_renew") is False


def _has_status(said: Said) -> bool:
    rows = [*said.after.rows("invoices"), *said.after.rows("orders")]
    return any((str(row["id"]), row["status"]) == (said["id"], said["status"]) for row in rows)


def _late_order(said: Said) -> bool:
    is_late = said.world.cell.pause > 7 * DAY or said.world.has_waited
    return is_late and _has_status(said)


def _money(said: Said) -> bool:
    """Before the run or after it: what is deleted in it may return more."""
    id, expected = int(said["id"]), (Decimal(said["amount"] or 0), Decimal(said["kept"] or 0))

    def shown(look: Look) -> tuple[Decimal, Decimal]:
        paid, returned = (
            sum((Decimal(row["amount"]) for row in said.moved(direction, look, invoice_id=id)), Decimal(0))
            for direction in ("debit", "credit")
        )
        return returned, paid - returned

    return expected in (shown(said.before), shown(said.after))


def _nothing_charged(said: Said) -> bool:
    return not said.moved("debit", said.after, invoice_id=int(said["id"]))


def _charged_ever(said: Said) -> bool:
    having: dict[str, Any] = {"invoice_id": int(said["id"])} if said["id"] else {}
    return bool(said.moved("debit", said.after, amount=said["amount"], **having))


def _fate(said: Said) -> bool:
    """Of the latest purchase before the run, or of one that the service called off at once."""
    bought = said.after.debits(said.operation)
    returned = any(said.moved("credit", said.after, invoice_id=row["invoice_id"]) for row in bought)
    if said["fate"] == "never arrived":
        is_late = said.world.cell.pause > 7 * DAY or said.world.has_waited
        return is_late and not said.world.has_come(said.before)
    return returned or (said["fate"] == "was cancelled" and not said.world.has_come(said.before))


_WHAT = (
    r"(?:it|(?:the|an earlier) (?:order|registration|transfer) of [\w.-]+|order N for server '\w+'"
    r"|the purchase of an address for server N|the (?:renewal|payment) of \w+ N)"
)
CLAIMS: tuple[tuple[Callable[[Said], bool], str], ...] = (
    (lambda said: True, r"will charge MONEY EUR \(.*\)"),  # the prices of a run are summed up: `_prices`
    (Said.was_charged, r"charged (?P<amount>MONEY) EUR(?: \(.*?)?(?:\)|(?:\))?, invoice ID)?"),
    (Said.adds_up, r"charged (?P<amount>MONEY) EUR, credited (?P<credit>MONEY), balance (?P<balance>MONEY)"),
    (Said.is_due, r"due next: (?P<kind>server|domain) ID \([\w.-]+\) on (?P<day>DATE)"),
    (_address_paid, r"an address for server N is ordered and was charged (?P<amount>MONEY) EUR"),
    (_paid, r"order ID is (?:placed and was charged MONEY EUR|paid and in no state)"),
    (_paid, r"order ID of an interrupted run was found by its key"),
    (_was_paid, r"(?:server \w+: )?(?:waiting for )?order ID (?:\(|is )?(?:provisioning|processing)\)?"),
    (_paid, r"order ID for (?:server '\w+'|a server named '\w+') is still provisioning after N s"),
    (_was_paid, r"a server named '\w+' is being created \(order ID, placed .*"),
    (_late_order, r"order ID for server '\w+' is still (?P<status>\w+) after more than seven days"),
    (_has_status, r"order ID for server '\w+' ended as (?P<status>\w+)(?:: it was \w+)?"),
    (_has_status, r"invoice ID is (?P<status>\w+) and cannot be paid"),
    (_address_coming, r"server address pending:(?P<server>N)/N is paid and in no state"),
    (_address_not_there, r"the address bought for server ID is not assigned after N s"),
    (_address_coming, r"server ID counts N bought addresses and shows N \(.*\)"),
    (_address_was_coming, r"server ID: waiting for (?:the|an) address.*"),
    (_domain_coming, r"NAME was ordered, and is not among the domains of the account yet"),
    (_domain_coming, r"NAME: the order was accepted and is \w+"),
    (_domain_coming, r"domain NAME(?: is \w+)?: auto_renew can(?:not)? be set .*"),
    (lambda said: not said.run.debits(said.operation), r"nothing (?:was|is) (?:ordered|bought|paid)"),
    (lambda said: len(said.run.debits(said.operation)) <= 1, r"nothing was repeated"),
    (lambda said: not said.run.debits(), r"nothing was (?:done|sent|changed|charged: .*)"),
    (lambda said: not any(said.moved("credit")), r"nothing was (?:deleted|removed)"),
    (_returned, r"the charge was returned (?:\(invoice ID\)|to the balance)"),
    (_fate, _WHAT + r" (?P<fate>was refunded|was refused|was cancelled|never arrived)"),
    (_money, r"(?P<amount>MONEY) EUR were returned, invoice ID(?:: .*)?"),
    (_money, r"(?P<kept>MONEY) EUR were not returned, invoice ID(?:: .*)?"),
    (_money, r"(?P<amount>MONEY) EUR were returned and (?P<kept>MONEY) EUR were not returned, invoice ID"),
    (_nothing_charged, r"nothing was charged, invoice ID"),
    (_charged_ever, r"an interrupted run \w+ .*: (?P<amount>MONEY) EUR were charged, invoice ID"),
    (_was_paid, r"order (?P<order>ID) for server '\w+' is on its way"),
    (_charged_ever, r"(?P<amount>MONEY) EUR were charged, invoice ID"),
    (_charged_ever, r"(?P<kind>domain) NAME exists and was charged (?P<amount>MONEY) EUR"),
    (_returned, r"an earlier order for server '\w+', ID, ended as \w+ and its charge was returned: .*"),
    (_domain_coming, r"the \w+ of NAME is under way, and its auto-renew cannot be turned off yet"),
    (_domain_was_coming, r"waiting for the \w+ of NAME"),
    (Said.orders_again, r"(?:it|another) is (?:ordered|bought)(?: again)? if it is still declared"),
    (lambda said: said.world.holdings() <= said.world.event.loses, r"nothing is left to (?:remove|delete)"),
    (lambda said: bool(said.moved("credit", amount=said["credit"])), r"(?P<credit>MONEY) EUR credited"),
    (Said.deletes, r"server ID deleted(?:, (?P<credit>MONEY) EUR credited)?"),
    (Said.deletes, r"server ID deleted with address [0-9.]+ \(id (?P<address>N)\), MONEY EUR a month"),
    (
        lambda said: not said.lives(said.before) and not said.lives(),
        r"server ID \(\w+\) is gone from the account(?: \(last due DATE\))?(?:, and the state .*)?",
    ),
    (Said.orders_again, r"a new one is ordered if the program declares it"),
    (
        lambda said: not said.lives(),
        r"(?P<kind>domain|server) ID is gone: it was deleted outside of this program",
    ),
    (Said.lives, r"server ID was not deleted, and neither was what goes with it.*"),
    (Said.lives, r"server ID \(\w+\) stays and costs MONEY EUR a month.*"),
    (
        lambda said: said.find("servers", said.before).get("name") == said["now"],
        r"(?:server address: |PTR record: )?server ID was ordered as '\w+', "
        r"as (?:its ownership tag|this machine's note of its order) shows, "
        r"and is named '(?P<now>\w+)' now",
    ),
    (
        lambda said: said.find("servers", said.before).get("name") == said["now"],
        r"server ID was ordered for this resource and is named '(?P<now>\w+)', not '\w+'",
    ),
    (
        lambda said: said.find("servers", said.before).get("name") == said["now"],
        r"the server with id ID has name '(?P<now>\w+)', not '\w+'",
    ),
    (
        lambda said: not said.has_tag(said.before),
        r"server ID carries no ownership tag, after an edit .*",
    ),
    (lambda said: said.has_tag(said.before), r"server ID: it carries the ownership tag of another resource"),
    (
        lambda said: not said.world.holdings() or said.run.failure is not None,
        r"all else is as the state recorded it, so it is deleted",
    ),
    (Said.lives, r"this resource's order already created server ID, now named '\w+'"),
    (Said.lives, r"a server named '\w+' exists already \(id ID, .*"),
    (
        lambda said: said["status"] in (said.status(said.kind), said.status(said.kind, said.before)),
        r"(?P<kind>server|domain) ID \([\w.-]+\) is (?P<status>suspended|expired)"
        r"(?: and locked by the provider's staff)?"
        r"(?:, though it is paid until DATE| \(it was paid until DATE\))?",
    ),
    (
        lambda said: said.status(said.kind) in ("pending_cancel", "suspended"),
        r"(?P<kind>server) ID \([\w.-]+\) (?:is suspended, and )?ends(?: on DATE)?: "
        r"its cancellation is approved",
    ),
    (
        lambda said: said.find(said.kind, said.after).get("auto_renew") is False,
        r"(?:Note: |Soon: |Urgent: |Last day: |Overdue: )?(?P<kind>server|domain) ID \([\w.-]+\) (?:is|was) "
        r"paid until DATE and does not renew itself",
    ),
    (
        lambda said: not said.find(said.kind, said.after).get("auto_renew"),  # check mode: not there yet
        r"(?P<kind>server|domain) NAME(?: is paid until DATE, and)? does not renew itself",
    ),
    (
        Said.lives,
        r"(?:Note: |Soon: |Urgent: |Last day: |Overdue: )?(?P<kind>server|domain) ID \([\w.-]+\) (?:is|was) "
        r"paid until DATE, and the balance of MONEY EUR does not cover the MONEY EUR that are due by then",
    ),
    (
        lambda said: (
            said["balance"] in [look.objects["accounts"][0]["balance"] for look in (said.before, said.after)]
        ),
        r"balance (?P<balance>MONEY) EUR: the balance covers everything "
        r"(?:that renews itself|until DATE: then (?:server|domain) ID \([\w.-]+\) is due)",
    ),
    (
        lambda said: said.find(said.kind, said.before).get("blocked") is True,
        r"(?P<kind>server|domain) ID \([\w.-]+\) is locked by the provider's staff: it is paid until DATE, "
        r"and nothing renews it",
    ),
    (Said.lives, r"(?P<kind>domain) NAME stays on the account: it cannot be deleted via the API"),
    (Said.lives, r"(?P<kind>domain) '[\w.-]+' is not valid: name: NAME cannot be registered: taken"),
    (_domain_stays, r"domain [\w.-]+ \(id ID, MONEY EUR a year if renewed\) stays.*: auto-renew is off"),
    (lambda said: not said.lives(), r"server_id: there is no server ID on this account"),
    (lambda said: not said.lives(), r"there is no (?P<kind>server|domain) named 'NAME' on this account"),
    (Said.takes_over, r"takes over server address pending:(?P<server>N).*"),
    (Said.lives, r"[\w.-]+ is already on the account \((?P<kind>server|domain) (?P<id>N), .*\)"),
    (Said.takes_over, r"takes over (?P<kind>server address|server|domain) (?P<id>[0-9/]+).*"),
    (lambda said: not _address_there(said), r"address (?P<address>[0-9.]+) \(id N\) of server N released"),
    (lambda said: not said.moved("credit", operation="delete_server_ip"), r"nothing is refunded for it"),
    (
        _address_there,
        r"address (?P<address>[0-9.]+) (?:is|\(id N\) was bought by an earlier run of) this resource.*",
    ),
    (_address_there, r"server N has addresses of unknown origin: (?P<address>[0-9.]+) \(id N\), .*"),
    (
        Said.is_of_account,
        r"(?P<kind>server address|server|domain) (?:(?P<order>order:)|pending:(?P<server>N)/N|)"
        r"(?P<id>[0-9/]*) is on account (?P<account>N), and this is a key of account (?P<other>N)",
    ),
)
NEUTRAL: tuple[str, ...] = (
    r"unfinished",
    r"run total .*",
    r"it becomes active later",
    r"ask the provider (?:about it|why)",
    r"to (?:order|buy) another one, set order_attempt to \w+",
    r"if its server still arrives, no state has it",
    r"it is waited for, and taken over if .*",
    r"it carries the tag of another resource.*",
    r"all else is as the state recorded it, so the tag is written again",  # what is there shows it
    r"another one is ordered only if .*",
    r"If this stack bought it, it is adopted",
    r"if not, the run stops",
    r"nothing is paid before that is known, and unless .*",
    r"What was declared with server= has left the state, though it was reported as deleted",
    r"the API cannot delete domains",
    r"auto-renew is off",
    r"If it was declared with server=, it has left the state, though it was reported as deleted",
    r"what became of its charge is not known",
    r"if it still comes, it goes when .*",
    r".*: another (?:operation is running|request is known under its key)",
    r"looking again",
    r"[\w' .-]+: the panel, registrar or gateway failed \(.*\)",
    r"[\w' .-]+: (?:the domain is locked by staff|the server's status does not allow this)",
    r"[\w' .-]+: the balance does not cover the price",
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.sub("|".join(map(r"\b{}\b".format, _ANY)), lambda found: _ANY[found[0]], text))


_ANY = {
    "MONEY": r"[0-9]+\.[0-9]{2}",
    "DATE": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "NAME": r"(?P<name>[\w.-]+)",
    "ID": r"(?P<id>[0-9]+)",
    "N": r"[0-9]+",
}
_CLAIMS = [(check, _pattern(text)) for check, text in CLAIMS]
_NEUTRAL = [re.compile(text) for text in NEUTRAL]


def false_sentences(world: World, run: Run) -> list[str]:
    """The clauses that the account contradicts, and those that no pattern knows."""
    found = []
    for line in dict.fromkeys(run.lines):
        said = _PREFIX.sub("", line).partition("Next:")[0].strip()
        for clause in filter(None, (part.strip() for part in _BETWEEN.split(said))):
            if problem := _problem(world, run, clause):
                found.append(f"{run.command}: {problem}: {clause!r} in {line!r}")
    return found + _prices(world, run)


def _problem(world: World, run: Run, clause: str) -> str | None:
    for check, pattern in _CLAIMS:
        if match := pattern.fullmatch(clause):
            return None if check(Said(world, run, match)) else "not true"
    return None if any(pattern.fullmatch(clause) for pattern in _NEUTRAL) else "no pattern knows it"


def _prices(world: World, run: Run) -> list[str]:
    """What is charged must have been announced, and what was announced be charged, unless the run fails."""
    texts = re.findall(r"will charge ([0-9.]+) EUR", " ".join(dict.fromkeys(run.lines)))
    announced = sum(map(Decimal, texts), Decimal(0)) if run.charge is None else Decimal(run.charge)
    if run.command in ("preview", "check"):
        world.announced = announced if run.failure is None else None
        return []
    before, world.announced = world.announced, None
    orders_again, world.orders_again = world.orders_again, world.orders_again and run.command == "refresh"
    if run.failure is not None or run.command == "refresh":
        return []
    found = []
    is_maximum = any("another one is ordered only if" in line for line in run.lines)
    is_maximum = is_maximum or world.may_be_unlisted  # an order that is under way is not paid again
    if before is not None and before != run.charged and not (is_maximum and before > run.charged):
        found.append(f"{run.command} charged {run.charged}, the preview said {before}")
    if announced != run.charged and not (is_maximum and announced > run.charged):
        found.append(f"{run.command} charged {run.charged} and said {announced}")
    if orders_again and not run.debits():
        found.append(f"{run.command} ordered nothing again, as the refresh had said")
    return found
