"""The purchases under way on this machine: who is told of them, and until when."""

import os
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.exactly_once import local_files, purchase_journal
from pulumi_hosting.exactly_once.purchase_journal import Entry
from pulumi_hosting.session.request import Request
from tests.exactly_once.service import NOW, Service

KEY = "iac3-a-key"


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "run"
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(path))
    return path


@pytest.fixture
def request_(runtime: Path) -> Request:
    return Service([]).request()


def open_entries(runtime: Path) -> list[Path]:
    return [*runtime.glob("*.open")]


def begun(request: Request, subject: str = "") -> None:
    purchase_journal.begin(request, "server", subject, KEY, None)


def interrupted(request: Request, subject: str = "", **changes: Any) -> Entry | None:
    """What a later run of the declaration is told."""
    return purchase_journal.interrupted(
        Request(request.session, request.identity, **changes), "server", subject
    )


def of_a_process(request: Request, pid: int) -> None:
    """The entry is one of that process."""
    scope = local_files.account_scope(request.client)
    name = f"server {request.identity} "
    found = local_files.read(scope, name, survives=False, kind="open")
    assert found["process"] == os.getpid()
    local_files.write(scope, name, {**found, "process": pid}, survives=False, kind="open")


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_nothing_is_open_at_first_and_nothing_is_asked_for(request_: Request) -> None:
    request_.session._client = Service([], account_id=None)  # type: ignore[assignment, arg-type]  # a stub stands in
    assert interrupted(request_) is None


def test_an_entry_is_found_until_its_result_was_reported(request_: Request, runtime: Path) -> None:
    begun(request_)
    assert interrupted(request_) == Entry(NOW, KEY)
    assert len(open_entries(runtime)) == 1
    assert len(request_.unreported) == 1
    purchase_journal.reported(request_.unreported)
    assert interrupted(request_) is None
    assert (open_entries(runtime), request_.unreported) == ([], [])


def test_whoever_is_told_of_an_entry_ends_it_with_the_report(request_: Request, runtime: Path) -> None:
    begun(request_)
    later = Request(request_.session, request_.identity)
    assert purchase_journal.interrupted(later, "server") is not None
    purchase_journal.reported(later.unreported)
    assert open_entries(runtime) == []


def test_a_decided_outcome_ends_the_entry_at_once(request_: Request, runtime: Path) -> None:
    begun(request_)
    purchase_journal.end(request_, "server")
    assert (interrupted(request_), open_entries(runtime)) == (None, [])
    purchase_journal.end(request_, "server")  # again does no harm


def test_the_entry_of_a_process_that_still_runs_is_not_shown_to_another(request_: Request) -> None:
    begun(request_)
    of_a_process(request_, os.getppid())
    assert interrupted(request_) is None


def test_the_entry_of_a_process_that_has_ended_is_shown(request_: Request) -> None:
    begun(request_)
    of_a_process(request_, ended_process())
    assert interrupted(request_) == Entry(NOW, KEY)


def test_a_run_that_goes_on_with_an_entry_keeps_when_it_began(request_: Request) -> None:
    begun(request_)
    earlier = interrupted(request_)
    request_.clock.sleep(3600.0)
    purchase_journal.begin(request_, "server", "", "iac3-another", earlier)
    assert interrupted(request_) == earlier
    purchase_journal.begin(request_, "server", "", "iac3-another", None)
    assert interrupted(request_) == Entry(NOW + timedelta(hours=1), "iac3-another")


def test_entries_of_other_purchases_are_apart(request_: Request, runtime: Path) -> None:
    begun(request_, "a.com")
    begun(request_, "b.com")
    purchase_journal.end(request_, "server", "a.com")
    assert interrupted(request_, "a.com") is None
    assert interrupted(request_, "b.com") is not None
    assert interrupted(request_) is None
    assert purchase_journal.interrupted(request_, "domain", "b.com") is None
    other = Request(request_.session, "pulumi:t/dev/server/b")
    assert purchase_journal.interrupted(other, "server", "b.com") is None
    assert len(open_entries(runtime)) == 1


@pytest.mark.parametrize("changes", [{"account_id": 8}, {"base_url": "https://other.example/v1"}], ids=str)
def test_entries_of_other_accounts_are_apart(request_: Request, changes: dict[str, Any]) -> None:
    begun(request_)
    assert purchase_journal.interrupted(Service([], **changes).request(), "server") is None
    assert purchase_journal.interrupted(Service([]).request(), "server") is not None


def test_a_test_key_buys_nothing_and_notes_nothing(runtime: Path) -> None:
    request = Service([], is_test_key=True).request()
    begun(request)
    assert (interrupted(request), request.unreported) == (None, [])
    assert not runtime.exists() or open_entries(runtime) == []


@pytest.mark.parametrize("text", ["", "\0\0", "{}", '{"process": "x", "at": "y", "key": 1}', "[]", "{"])
def test_a_damaged_entry_says_nothing_and_stops_nothing(request_: Request, runtime: Path, text: str) -> None:
    begun(request_)
    (path,) = open_entries(runtime)
    path.write_text(text)
    assert interrupted(request_) is None


def test_without_a_directory_nothing_is_sent_and_nothing_is_shown(request_: Request, runtime: Path) -> None:
    runtime.write_text("not a directory")
    assert interrupted(request_) is None
    with pytest.raises(local_files.LocalFilesError):
        begun(request_)


@pytest.mark.parametrize(
    ("kind", "type", "of"),
    [
        ("server", "vds_purchase", "server_id"),
        ("server_ip", "ip_purchase", "server_id"),
        ("server_ip", "vds_addon", "server_id"),
        ("domain", "domain_purchase", "domain_id"),
        ("server_renew", "vds_renewal", "server_id"),
        ("domain_renew", "domain_renewal", "domain_id"),
        ("invoice_pay", "vds_renewal", "invoice_id"),
    ],
)
def test_an_interrupted_run_charged_what_was_paid_when_it_began(kind: str, type: str, of: str) -> None:
    def charged(minutes: float, type: str) -> bool:
        line = m.InvoiceItem.model_construct(server_id=7, domain_id=7, amount=Decimal(5))
        invoice = m.Invoice.model_construct(
            id=7,
            type=type,
            status="paid",
            amount=Decimal(5),
            currency="EUR",
            created_at=NOW,
            paid_at=NOW + timedelta(minutes=minutes),
            items=[line],
        )
        client = cast(Any, SimpleNamespace(invoices=SimpleNamespace(list=lambda: [invoice])))
        return purchase_journal.unreported(client, Entry(NOW, KEY), kind, {of: "7"}) is not None

    assert [charged(minutes, type) for minutes in (-5.1, -4.9, 0, 14.9, 15.1)] == [
        False,
        True,  # the clocks of this machine and of the service differ
        True,
        True,
        False,
    ]
    assert charged(0, "another") is (kind == "invoice_pay")
    assert purchase_journal.unreported(cast(Any, None), None, kind, {of: "7"}) is None
