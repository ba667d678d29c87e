"""What is run and killed: commands of each frontend, and what they do to which resource."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.ansible.in_process import ahead
from tests.support.programs import PUBLIC_KEY

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1J0oPqkq3n9mYh0b8Jx6m0c6K0s8mF0v7b0q3Yw2aB"
PASSWORD = "Canary-Horse-9"
AUTH_CODE = "EPP-Canary-7"
HOOK = "https://hooks.example.org/in"
LIVE_NAME, OTHER_NAME = "example.com", "example.net"

Inputs = Mapping[str, Any]
SERVER: Inputs = {
    "name": "it",
    "tariff_id": 1,
    "os": "debian-12",
    "auto_renew": True,
    "notes": "one",
    "password": PASSWORD,
}
SECOND: Inputs = {name: SERVER[name] for name in SERVER if name != "tariff_id"} | {
    "tariff": ["VDS-2", "VDS-1"]
}
WEB: Inputs = {"name": "web", "tariff_id": 1, "os": "debian-12", "auto_renew": True}
DB: Inputs = {**WEB, "name": "db"}
BUSY = {"method": "POST", "path": "^/servers$", "times": 50, "action": {"panel_timeout": "active"}}
PENDING = {"method": "POST", "path": "^/domains$", "times": 50, "action": {"registrar": "pending"}}


@dataclass(frozen=True)
class Subject:
    """One kind of object or paid action.

    ``make``: what is declared. ``changes``: what is declared instead, by the kind of change. ``needs``: what
    is there before, by name: kind and inputs. ``absent``: the options that remove it (Ansible).
    ``is_unpaid``: whether an unpaid invoice is needed. ``balance``: what the account has. ``aged``: days that
    pass before the command. ``sold_out``: a tariff that is out of stock until the command is
    killed, and in stock again when it is run once more.
    """

    kind: str
    make: Inputs
    changes: Mapping[str, Inputs] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, Inputs]] = field(default_factory=dict)
    absent: Inputs | None = None
    faults: tuple[Mapping[str, Any], ...] = ()
    provisioning_delay: float = 0.0
    ip_delay: float = 0.0
    is_unpaid: bool = False
    balance: str = "100000.00"
    aged: float = 0.0
    sold_out: int | None = None


_WEB = {"web": ("server", WEB)}
_WEBS = {**_WEB, "db": ("server", DB)}
_DOMAIN: Inputs = {"name": LIVE_NAME, "auto_renew": True}
_NAMESERVERS = ["ns1.example.net", "ns2.example.net"]

# A renewal lasts for longer than the longest pause: a second one would be due after it.
_LET_END: Inputs = {"name": LIVE_NAME, "auto_renew": False}
_KEPT = Subject("domain", _LET_END, {"update": {**_LET_END, "keep_paid": "350d"}}, aged=20)

PULUMI: Mapping[str, Subject] = {
    "server 201": Subject(
        "server", SERVER, {"update": {**SERVER, "notes": "two"}, "replace": {**SERVER, "os": "ubuntu-24.04"}}
    ),
    "server 202": Subject(
        "server",
        SERVER,
        {"replace": {**SERVER, "os": "ubuntu-24.04"}},
        faults=(BUSY,),
        provisioning_delay=45,
    ),
    "second tariff": Subject("server", SECOND, sold_out=2),
    "second tariff 202": Subject("server", SECOND, faults=(BUSY,), provisioning_delay=45, sold_out=2),
    "power": Subject("server", {**SERVER, "power": "running"}, {"update": {**SERVER, "power": "stopped"}}),
    "password": Subject(
        "server",
        {**SERVER, "rebuild": "reinstall"},
        {"update": {**SERVER, "rebuild": "reinstall", "password": "Canary-Horse-8"}},
    ),
    "domain": Subject(
        "domain",
        _DOMAIN,
        {
            "update": {**_DOMAIN, "auto_renew": False, "nameservers": _NAMESERVERS},
            "replace": {**_DOMAIN, "name": OTHER_NAME},
        },
    ),
    "domain 202": Subject("domain", _DOMAIN, faults=(PENDING,), provisioning_delay=45),
    "transfer": Subject("domain", {"name": "example-2.com", "auth_code": AUTH_CODE}),
    "kept domain": _KEPT,
    "server_ip": Subject("server_ip", {"server_id": "=web"}, {"replace": {"server_id": "=db"}}, needs=_WEBS),
    "late server_ip": Subject(
        "server_ip",
        {"server_id": "=web"},
        {"replace": {"server_id": "=db"}},
        needs=_WEBS,
        ip_delay=45,
    ),
    "ssh_key": Subject(
        "ssh_key",
        {"name": "me", "public_key": PUBLIC_KEY},
        {
            "update": {"name": "you", "public_key": PUBLIC_KEY},
            "replace": {"name": "me", "public_key": OTHER_KEY},
        },
    ),
    "ptr": Subject(
        "ptr",
        {"server_id": "=web", "address": "@web", "domain": "a.example.com"},
        {
            "update": {"server_id": "=web", "address": "@web", "domain": "b.example.com"},
            "replace": {"server_id": "=db", "address": "@db", "domain": "a.example.com"},
        },
        needs=_WEBS,
    ),
    "webhook": Subject(
        "webhook_subscription",
        {"url": HOOK, "events": ["*"]},
        {
            "update": {"url": HOOK, "events": ["ping"]},
            "rotate": {"url": HOOK, "events": ["*"], "rotation": "2"},
        },
    ),
}
_IT = {"it": ("server", SERVER)}
ANSIBLE: Mapping[str, Subject] = {
    "server 201": Subject(
        "server",
        SERVER,
        {"update": {**SERVER, "notes": "two"}},
        absent={"name": "it", "state": "absent"},
    ),
    "server 202": Subject(
        "server",
        SERVER,
        absent={"name": "it", "state": "absent"},
        faults=(BUSY,),
        provisioning_delay=45,
    ),
    "second tariff": Subject("server", SECOND, sold_out=2),
    "second tariff 202": Subject("server", SECOND, faults=(BUSY,), provisioning_delay=45, sold_out=2),
    "power": Subject("server", {"name": "it", "state": "stopped"}, needs=_IT),
    "restart": Subject("server", {"name": "it", "state": "restarted"}, needs=_IT),
    "reinstall": Subject(
        "server", {"name": "it", "state": "reinstalled", "os": "ubuntu-24.04", "erase": "it"}, needs=_IT
    ),
    "password": Subject("server_password", {"name": "it", "password_file": "@file"}, needs=_IT),
    "domain": Subject(
        "domain",
        _DOMAIN,
        {"update": {**_DOMAIN, "auto_renew": False, "nameservers": _NAMESERVERS}},
        absent={"name": LIVE_NAME, "state": "absent"},
    ),
    "domain 202": Subject(
        "domain",
        _DOMAIN,
        absent={"name": LIVE_NAME, "state": "absent"},
        faults=(PENDING,),
        provisioning_delay=45,
    ),
    "transfer": Subject("domain_transfer", {"name": "example-2.com", "auth_code": AUTH_CODE}),
    "server_ip": Subject(
        "server_ip",
        {"server_name": "web"},
        needs=_WEB,
        absent={"server_name": "web", "address": "@bought", "state": "absent"},
    ),
    "late server_ip": Subject(
        "server_ip",
        {"server_name": "web"},
        needs=_WEB,
        absent={"server_name": "web", "address": "@bought", "state": "absent"},
        ip_delay=45,
    ),
    "ssh_key": Subject(
        "ssh_key",
        {"name": "me", "public_key": PUBLIC_KEY},
        {"replace": {"name": "me", "public_key": OTHER_KEY}},
        absent={"name": "me", "state": "absent"},
    ),
    "ptr": Subject(
        "ptr",
        {"server_name": "web", "domain": "a.example.com"},
        {"update": {"server_name": "web", "domain": "b.example.com"}},
        needs=_WEB,
        absent={"server_name": "web", "state": "absent"},
    ),
    "webhook": Subject(
        "webhook_subscription",
        {"url": HOOK, "events": ["*"]},
        {"update": {"url": HOOK, "events": ["ping"]}},
        absent={"url": HOOK, "state": "absent"},
    ),
    "kept domain": _KEPT,
    "server renewal": Subject("server_renew", {"name": "web", "until": ahead(45)}, needs=_WEB),
    "domain renewal": Subject(
        "domain_renew", {"name": LIVE_NAME, "until": ahead(500)}, needs={"site": ("domain", _DOMAIN)}
    ),
    "invoice payment": Subject("invoice_pay", {"id": "@invoice"}, needs=_WEB, is_unpaid=True),
    "top-up": Subject(
        "balance_topup",
        {"amount": "50.00", "gateway": "card", "balance_below": "2000.00"},
        balance="10.00",
    ),
}


@dataclass(frozen=True, order=True)
class Case:
    """A command and what it does to one subject."""

    frontend: str
    """``dynamic``, ``native`` or ``ansible``."""
    command: str
    subject: str
    change: str

    def __str__(self) -> str:
        return f"{self.frontend}, {self.command}, {self.change} {self.subject}"

    @property
    def declared(self) -> Subject:
        return (ANSIBLE if self.frontend == "ansible" else PULUMI)[self.subject]


def cases() -> list[Case]:
    """Every command of every frontend with everything it can do."""
    return sorted(_cases())


def _cases() -> Iterator[Case]:
    for form in ("dynamic", "native"):
        for name, subject in PULUMI.items():
            for change in ("create", *subject.changes, "delete"):
                yield Case(form, "up", name, change)
            yield Case(form, "destroy", name, "delete")
            yield Case(form, "refresh", name, "read")
    for name, subject in ANSIBLE.items():
        for change in ("create", *subject.changes):
            yield Case("ansible", "play", name, change)
        if subject.absent is not None:
            yield Case("ansible", "absent", name, "delete")
