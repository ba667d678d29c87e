"""Advice is in the words of the frontend: nothing below the frontends names a command of one, and what a user
of Pulumi or of Ansible reads names no command of the other, and no argument of the Python client."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ansible_collections.hosting.cloud.plugins.module_utils import failures
from pulumi_hosting.cli import connection, main
from pulumi_hosting.client import words
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import CODES, CallError, Code, HostingError, RateLimitTimeout
from pulumi_hosting.provider.failures import WORDS, as_user_error
from pulumi_hosting.session.clock import RunClock
from tests.ansible.in_process import Play
from tests.emulator.support import PUBLIC_KEY
from tests.provider.processes import WEB, provider_process
from tests.support.account import Account
from tests.support.advice import missing, problems
from tests.support.texts import texts

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pulumi_hosting"
CORE = ("api", "client", "session", "exactly_once", "resources", "planning", "actions")
OF_PULUMI = r"\bpulumi [a-z]"
OF_ANSIBLE = r"hosting\.cloud|ansible-"
OF_PYTHON = r"idempotency_key="


def naming(pattern: str, *folders: Path) -> list[str]:
    return [
        f"{place}: {text}" for folder in folders for place, text in texts(folder) if re.search(pattern, text)
    ]


def test_nothing_below_the_frontends_names_a_command_of_one() -> None:
    named = naming(f"{OF_PULUMI}|{OF_ANSIBLE}|{OF_PYTHON}", *(PACKAGE / folder for folder in CORE))
    assert [line for line in named if not line.startswith("pulumi_hosting/client/words.py:")] == []


def test_no_frontend_names_a_command_of_another() -> None:
    assert naming(f"{OF_ANSIBLE}|{OF_PYTHON}", PACKAGE / "provider") == []
    collection = ROOT / "ansible_collections" / "hosting" / "cloud" / "plugins"
    assert naming(f"{OF_PULUMI}|{OF_PYTHON}", collection) == []


TABLES = {
    "python": words.PYTHON,
    "command line": words.COMMAND_LINE,
    "pulumi": WORDS,
    "ansible": failures.words(),
}


@pytest.mark.parametrize("frontend", TABLES)
def test_every_entry_of_a_table_names_what_is_there(frontend: str) -> None:
    entries = {
        name: getattr(TABLES[frontend], name).replace("{kind}", "server") for name in words.Words.__slots__
    }
    assert [name for name, text in entries.items() if not text] in ([], ["forget"])
    assert {name: [*missing(text)] for name, text in entries.items() if any(missing(text))} == {}


def test_an_error_keeps_its_words() -> None:
    error = RateLimitTimeout("full", operation="get_me", bucket="normal", waited=1.0)
    error._words = WORDS
    for kept in (error, copy.copy(error), copy.deepcopy(error)):
        assert str(kept) == "full. Next: run the same command again later, or raise hosting:rateLimitTimeout"


# --- what users read of each error code

SOON = 20.0
"""Seconds that a call may wait for the rate limit."""


@contextmanager
def written_down(lines: list[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  # whatever it is, a person reads it
        lines.append(str(error))


def by_client(account: Account, *, write: bool) -> list[str]:
    lines: list[str] = []
    with written_down(lines), connected(account) as client:
        client.servers.create(tariff_id=1, os="debian-12", name="new") if write else client.servers.get(20001)
    return lines


def connected(account: Account, **options: Any) -> Client:
    return Client(
        account.live_key,
        account.base_url,
        transport=account.transport(),
        clock=account.clock.now,
        sleep=account.advance,
        **{"rate_limit_timeout": SOON} | options,
    )


def by_pulumi(account: Account, *, write: bool) -> list[str]:
    lines: list[str] = []
    with written_down(lines), as_user_error():
        provider_process(account, rateLimitTimeout=SOON).create("server", "new", {**WEB, "name": "new"})
    return lines


def by_ansible(account: Account, *, write: bool) -> list[str]:
    result = Play(account, rate_limit_timeout=SOON)("server", **SERVER)
    return [result["msg"]] if "failure" in result else []


def by_command(account: Account, *, write: bool) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "Client", partial(connected, account))
        patch.setenv(connection.TIMEOUT_VARIABLE, str(SOON))
        typed = ["action", "server-renew", "--id", "20001", "--until", "2029-06-10", "--max-charge", "5.00"]
        shown = CliRunner().invoke(main, [*typed, "--yes" if write else "--preview-only"])
    return re.findall("^error: (.*)", shown.stderr, re.MULTILINE)


FRONTENDS = dict(zip(TABLES, (by_client, by_command, by_pulumi, by_ansible), strict=True))
ABOUT = r"(server (20001|'new')|servers|orders|domains|balance)[: ]"


@pytest.mark.parametrize("frontend", FRONTENDS)
@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_a_line_about_an_error_code_helps_its_reader(
    code: Code, frontend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account()
    monkeypatch.setattr(RunClock, "sleep", lambda _, seconds: account.advance(seconds))
    monkeypatch.setattr(RunClock, "monotonic", lambda _: account.clock.now())
    account.server(name="web")
    # Who finds a key used takes the next one, and who finds it in progress waits, for ever.
    times = 1 if code.code in ("idempotency_conflict", "idempotency_in_progress") else 10**6
    for method in ("GET", "POST"):
        account.control("DELETE", "/faults")
        answer = {"status": code.status, "code": code.code, "message": "said by the service"}
        account.fault(answer, method=method, times=times)
        lines = FRONTENDS[frontend](account, write=method == "POST")
        assert len(lines) == 1 or times == 1
        for line in lines:
            # The engine prints the type and name of the resource before the line.
            assert frontend == "pulumi" or re.match(ABOUT, line), line
            assert problems(line, frontend) == [], line
            step = TABLES[frontend].fill(code.remedy)
            assert step in line or "may have been processed" in line or "404" in line or " — " in line, line


# --- and of other failures

SERVER: dict[str, Any] = {"name": "new", "tariff_id": 1, "os": "debian-12"}
PURCHASES: list[tuple[str, dict[str, Any]]] = [
    ("server", SERVER),
    ("server", {"name": "web", "state": "absent"}),
    ("server", {"name": "web", "state": "reinstalled", "erase": "web"}),
    ("server", {"name": "web", "state": "stopped"}),
    ("server", {"name": "web", "notes": "x"}),
    ("server_ip", {"server_name": "web"}),
    ("domain", {"name": "new.com"}),
    ("domain_transfer", {"name": "moved.com", "auth_code": "Xy98-Quince"}),
    ("domain_renew", {"name": "old.com", "until": "2031-01-01"}),
    ("server_renew", {"name": "web", "until": "2029-07-01"}),
    ("server_password", {"name": "web", "password_file": "/nowhere/password"}),
    ("balance_topup", {"amount": "25.00", "gateway": "card", "balance_below": "5000"}),
    ("invoice_pay", {"id": "40001"}),
    ("invoice_payment_link", {"id": "40001"}),
    ("ssh_key", {"name": "me", "public_key": PUBLIC_KEY}),
    ("ptr", {"server_name": "web", "domain": "a.example.com"}),
    ("webhook_subscription", {"url": "https://hooks.example.com/x", "events": ["*"]}),
]
FAULTS: dict[str, dict[str, Any]] = {
    "lost": {"drop": "after"},
    "unsent": {"drop": "before"},
    "half": {"truncate": 20},
    "500": {"status": 500},
    "503": {"status": 503},
    "504": {"status": 504},
    "gone": {"status": 404},
    "refused": {"status": 401},
    "odd": {"patch": {"server": None, "charged": None, "id": None, "invoice_id": None}},
}
DAILY = ("lost", "500", "refused")
"""An unknown outcome, an answer that is repeated, and one that is not."""


def fail_writes(account: Account, fault: str) -> None:
    """From now on every write fails so."""
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        account.control("POST", "/faults", {"method": method, "times": 10**6, "action": FAULTS[fault]})


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[pytest.mark.slow] * (name not in DAILY)) for name in FAULTS]
)
def test_a_playbook_reads_no_words_of_others(fault: str) -> None:
    account = Account()
    account.control("PATCH", "/account", {"balance": "1000.00"})
    before = Play(account)
    before("server", **SERVER | {"name": "web"})
    before("domain", name="old.com")
    fail_writes(account, fault)
    seen = []
    for name, options in PURCHASES:
        result = Play(account)(name, **options)
        seen += [result.get("msg", ""), *result["warnings"]]
    lines = [line for line in seen if line]
    assert len(lines) > 8
    assert not [line for line in lines if re.search(f"{OF_PULUMI}|{OF_PYTHON}|hosting:[a-z]", line)]
    assert not [line for line in lines if "defect" in line or line.count("Next: ") > 1]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_program_of_pulumi_reads_no_words_of_others(fault: str) -> None:
    account = Account()
    entry = provider_process(account).create("server", "web", WEB)
    fail_writes(account, fault)
    given: dict[str, dict[str, Any]] = {
        "server": {**WEB, "name": "new"},
        "server_ip": {"serverId": entry.id},
        "ptr": {"serverId": entry.id, "domain": "mail.example.com"},
        "domain": {"name": "new.com"},
        "ssh_key": {"name": "me", "publicKey": PUBLIC_KEY},
        "webhook_subscription": {"url": "https://hooks.example.com/x", "events": ["*"]},
    }
    lines = []
    for kind, inputs in given.items():
        process = provider_process(account)
        try:
            process.create(kind, "it", inputs)
        except Exception as error:  # noqa: BLE001  # whatever it is, a person reads it
            lines.append(" ".join(getattr(error, "reasons", None) or [str(error)]))
        lines += process.lines
    for act in ("delete", "update"):
        process = provider_process(account)
        try:
            if act == "delete":
                process.delete("server", entry)
            else:
                process.of("server").update(entry.id, entry.outputs, {**entry.inputs, "notes": "x"})
        except HostingError as error:
            lines.append(str(error))
        lines += process.lines
    assert len(lines) > 5
    assert not [line for line in lines if re.search(f"{OF_ANSIBLE}|{OF_PYTHON}|playbook", line)]
    assert not [line for line in lines if "defect" in line or line.count("Next: ") > 1]


def test_a_program_in_python_reads_how_to_repeat_the_call() -> None:
    account = Account()
    account.control("POST", "/faults", {"method": "POST", "times": 10**6, "action": {"drop": "after"}})
    with (
        Client(account.live_key, account.base_url, transport=account.transport(), sleep=account.advance) as c,
        pytest.raises(CallError) as caught,
    ):
        c.servers.create(tariff_id=1, os="debian-12", name="web")
    assert f'repeat the same call with idempotency_key="{caught.value.idempotency_key}"' in str(caught.value)
