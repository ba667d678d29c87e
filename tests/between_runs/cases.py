"""What is bought, what the account does with it afterwards, and which command comes next."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from typing import Any

from tests.crash.cases import ANSIBLE, PULUMI, Subject

DAY = 86400.0
PAUSES = (0.0, 6.9 * DAY, 7.1 * DAY, 30 * DAY)
"""Seconds between the runs; keys are remembered for seven days."""
WAIT = 60.0
"""Seconds for which a run waits."""
A_MOMENT = 10.0
"""Seconds between two runs without a pause."""
MEMORY = 7.1 * DAY
"""The service has forgotten its keys by then, and what has not come never does."""
LATE = 1.5 * WAIT
"""Seconds until what is late arrives: the first run has given up by then, and the third has not."""
TOO_LATE = 7.5 * DAY
"""The same for what comes after the service has forgotten its keys."""
NEVER = 3650 * DAY
PLENTY = {"balance": "100000.00"}


@dataclass(frozen=True)
class Purchase:
    """``operation`` is its row in the table of operations, ``path`` its request, ``pending`` the fault that
    leaves it on its way when the first run ends."""

    operation: str
    path: str
    pending: Mapping[str, str] | None = None


_PENDING = {"registrar": "pending"}
PURCHASES: Mapping[str, Purchase] = {
    "server 201": Purchase("create_server", "^/servers$"),
    "server 202": Purchase("create_server", "^/servers$", {"panel_timeout": "active"}),
    "server_ip": Purchase("add_server_ip", "^/servers/[0-9]+/ips$"),
    "late server_ip": Purchase("add_server_ip", "^/servers/[0-9]+/ips$"),
    "domain": Purchase("register_domain", "^/domains$"),
    "domain 202": Purchase("register_domain", "^/domains$", _PENDING),
    "transfer": Purchase("transfer_domain", "^/domains/transfers$"),
    "server renewal": Purchase("renew_server", "^/servers/[0-9]+/renew$"),
    "domain renewal": Purchase("renew_domain", "^/domains/[0-9]+/renew$"),
    "late domain renewal": Purchase("renew_domain", "^/domains/[0-9]+/renew$", _PENDING),
    "invoice payment": Purchase("pay_invoice", "^/invoices/[0-9]+/pay$"),
    "top-up": Purchase("create_topup", "^/balance/topup$"),
}
_TOPUP = ANSIBLE["top-up"]
SUBJECTS: Mapping[str, Mapping[str, Subject]] = {
    "pulumi": PULUMI,
    "ansible": {
        **ANSIBLE,
        "late domain renewal": ANSIBLE["domain renewal"],
        "top-up": replace(_TOPUP, make={**_TOPUP.make, "balance_below": "50.00"}),  # one is enough
    },
}
SERVERS = ("server 201", "server 202")
ADDRESSES = ("server_ip", "late server_ip")
DOMAINS = ("domain", "domain 202", "transfer")
RENEWED_DOMAINS = ("domain renewal", "late domain renewal")
ON_A_SERVER = (*SERVERS, *ADDRESSES, "server renewal")
COMING = ("server 202", "late server_ip", "domain 202", "transfer", "late domain renewal")
"""What is on its way when the first run ends."""

Call = tuple[str, str, Mapping[str, Any] | None]
"""A control call: method, path and body. ``{it}`` is the path of what was bought, ``{server}`` the id of its
server and ``{invoice}`` that of its invoice. ``KEY`` is a POST whose key the next commands use."""


@dataclass(frozen=True)
class Event:
    """What the account does.

    ``to``: the purchases to which it can happen. ``fault``: how their request is answered. ``at_once``: what
    happens when the first run has ended, ``later``: at the end of the pause. ``loses``: what was paid is
    gone for good, so that another purchase is right. ``shows``: words of the account's objects → those of
    an undisturbed run.
    """

    to: tuple[str, ...]
    fault: Mapping[str, Any] | None = None
    at_once: tuple[Call, ...] = ()
    later: tuple[Call, ...] = ()
    loses: bool = False
    shows: Mapping[str, str] | None = None


_REFUND: Call = ("POST", "/invoices/{invoice}/refund", {})
_CONFIRM: Call = ("POST", "/invoices/{invoice}/confirm", {})
_SUSPENDED: tuple[Call, ...] = (
    ("PATCH", "/account", {"balance": "0.00"}),
    ("POST", "/clock", {"advance": 35 * DAY}),
    ("PATCH", "/account", PLENTY),
)


def _edit(**body: Any) -> tuple[Call, ...]:
    return (("PATCH", "/servers/{server}", body),)


EVENTS: Mapping[str, Event] = {
    "nothing": Event(tuple(PURCHASES)),
    "refunded at once": Event(
        tuple({*PURCHASES, "transfer"} - {*COMING, "top-up"} | {"transfer"}),
        {"refunded": 502, "code": "upstream_error"},
    ),
    "refunded while pending": Event(COMING, at_once=(_REFUND,)),
    "refused while pending": Event(
        ("server 202", "domain 202", "transfer", "late domain renewal"),
        {"panel_timeout": "failed", "registrar": "refused"},
    ),
    "never arrives": Event(
        COMING, {"registrar": "never", "ip": "never"}, loses=True, shows={"False": "True"}
    ),  # what is pending cannot be changed yet
    "arrives too late": Event(("server 202",)),
    "cancelled while pending": Event(
        ("domain 202", "transfer"), at_once=(("PATCH", "{it}", {"status": "cancelled"}),), loses=True
    ),
    "refunded later": Event(
        ("server 201", "server_ip", "domain", "server renewal", "domain renewal", "invoice payment"),
        later=(_REFUND,),
    ),
    "paid and refunded": Event(("top-up",), later=(_CONFIRM, _REFUND)),
    "paid late": Event(("invoice payment", "top-up"), later=(_CONFIRM,)),
    "suspended, paid late": Event(("server 201", "server renewal"), later=(*_SUSPENDED, _CONFIRM)),
    "deleted": Event((*SERVERS, *ADDRESSES, *DOMAINS), later=(("DELETE", "{it}", None),), loses=True),
    "its server deleted": Event(
        (*ADDRESSES, "server renewal"), later=(("DELETE", "/servers/{server}", None),), loses=True
    ),
    "its domain deleted": Event(RENEWED_DOMAINS, later=(("DELETE", "{it}", None),), loses=True),
    "renamed": Event(ON_A_SERVER, later=_edit(name="renamed")),
    "notes edited": Event(SERVERS, later=_edit(notes="edited by hand")),
    "another's tag": Event(SERVERS, later=_edit(notes="one [iac2:abcdefgh]")),
    "suspended": Event(ON_A_SERVER, later=_edit(status="suspended"), shows={"suspended": "active"}),
    "blocked": Event(DOMAINS, later=(("PATCH", "{it}", {"blocked": True}),)),
    "another account's key": Event((*SERVERS, *ADDRESSES, *DOMAINS), later=(("KEY", "/accounts", {}),)),
    "another key of the account": Event(tuple(PURCHASES), later=(("KEY", "/keys", {"mode": "live"}),)),
}
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "pulumi": ("preview", "up", "refresh", "destroy", "removed"),
    "ansible": ("check", "task", "absent"),
}
REMOVING = ("destroy", "removed", "absent")
ONLY_LOOKING = ("preview", "check", "refresh")


@dataclass(frozen=True, order=True)
class Cell:
    """``form``: ``dynamic``, ``native`` or ``ansible``. ``pause`` in seconds."""

    form: str
    purchase: str
    event: str
    pause: float
    command: str

    def __str__(self) -> str:
        return f"{self.form}, {self.purchase}, {self.event}, {self.pause / DAY:g} days, {self.command}"

    @property
    def subject(self) -> Subject:
        return SUBJECTS["ansible" if self.form == "ansible" else "pulumi"][self.purchase]

    @property
    def apply(self) -> str:
        """The command that makes it as declared."""
        return "task" if self.form == "ansible" else "up"


def cells() -> list[Cell]:
    """All that can happen."""
    return sorted(cell for cell in _combinations() if _is_possible(cell))


def _combinations() -> Iterator[Cell]:
    for form, frontend in (("dynamic", "pulumi"), ("native", "pulumi"), ("ansible", "ansible")):
        for name, event in EVENTS.items():
            for purchase in sorted({*event.to} & {*SUBJECTS[frontend]}):
                for pause in PAUSES:
                    for command in COMMANDS[frontend]:
                        yield Cell(form, purchase, name, pause, command)


def _is_possible(cell: Cell) -> bool:
    event, purchase, is_key = cell.event, cell.purchase, "key" in cell.event
    has_come = cell.pause > 0 or purchase not in ("server 202", "late server_ip", "late domain renewal")
    if cell.command == "absent":  # a task names the address to release, so it must have come
        never = purchase in ADDRESSES and event.startswith(("refunded at", "refunded while", "never"))
        if cell.subject.absent is None or never or (purchase == "late server_ip" and not has_come):
            return False
    if event == "another account's key" and cell.form == "ansible":
        return False  # there is no state: the other account is meant
    in_no_state = cell.form == "dynamic" and purchase in ("server 202", "late server_ip")
    if in_no_state and (cell.command in REMOVING or event == "another account's key"):
        return False  # a removal knows nothing of what is on its way, and nothing tells whose it is
    if event == "arrives too late":  # before, nothing tells it from what never arrives
        return cell.pause in (6.9 * DAY, 30 * DAY)
    if event == "suspended, paid late":  # a month is over by then
        return cell.pause == 30 * DAY
    if purchase == "invoice payment" and event == "paid late":  # its server is terminated after 14 days
        return cell.pause < 30 * DAY
    return has_come or is_key or not EVENTS[event].later


def _pairs(cell: Cell) -> set[object]:
    return {*combinations(enumerate(astuple(cell)), 2)}


def paired(of: list[Cell]) -> list[Cell]:
    """So many of the cells that each two values that can meet do, and each event of each purchase meets each
    form and each command."""
    return _covering(
        of,
        lambda cell: {
            *_pairs(cell),
            (cell.purchase, cell.event, cell.form),
            (cell.purchase, cell.event, cell.command),
        },
    )


def few(of: list[Cell]) -> list[Cell]:
    """So many that there is each event, each purchase, each form and each command."""
    return _covering(of, lambda cell: {cell.event, cell.purchase, cell.form, cell.command})


def sample(of: list[Cell]) -> list[Cell]:
    """So many that each event meets each form, and each purchase each command."""
    return _covering(of, lambda cell: {(cell.event, cell.form), (cell.purchase, cell.command)})


def _covering(of: list[Cell], meets: Callable[[Cell], set[object]]) -> list[Cell]:
    """Cells in which everything meets that meets in any of them."""
    seen: set[object] = set()
    chosen, shuffled = [], list(of)
    random.Random(1).shuffle(shuffled)  # noqa: S311  # repeatable on purpose
    for cell in shuffled:
        if new := meets(cell) - seen:
            seen |= new
            chosen.append(cell)
    return sorted(chosen)
