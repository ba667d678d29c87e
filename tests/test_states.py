"""What earlier versions left behind is read by this one: states of stacks, accounts of the emulator, results
and local files of playbooks.

A folder in `tests/fixtures/states/` per version; `record.py` beside them makes the next.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.private_directory import name_of
from pulumi_hosting.emulator import running
from pulumi_hosting.exactly_once.local_files import account_scope
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.rehearsal.warm_python import WarmPython
from pulumi_hosting.reports.run_results import run_results, stack_export
from tests.fixtures.states import record
from tests.support.programs import FORMS, make_program

VERSIONS = sorted(path.name for path in record.HERE.iterdir() if (path / "ansible").is_dir())
KINDS = {"server", "ssh_key", "domain", "server_ip", "ptr"}


def copied(version: str, name: str, to: Path) -> Path:
    """The account of a recorded run, on a copy."""
    to.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(record.HERE / version / name / "account.db", to / "account.db"))


def test_this_version_or_one_before_it_is_recorded() -> None:
    assert VERSIONS[0] == "0.1.0"


@pytest.mark.parametrize("version", VERSIONS)
def test_reports_read_exports_and_results_of(version: str) -> None:
    folder = record.HERE / version
    of_stacks = []
    for form in FORMS:
        with stack_export(folder / form / "stack.json") as export:
            of_stacks.append(ManagedObjects.of_stack(export))
    assert [{found.kind for found in objects} for objects in of_stacks] == [
        KINDS | {"webhook_subscription"}
    ] * 2
    assert len({(found.kind, found.id) for objects in of_stacks for found in objects}) == 6
    reported = run_results(folder / "ansible" / "report.json")
    assert {found.kind for found in reported} == KINDS
    results = json.loads((folder / "ansible" / "results.json").read_text(encoding="utf-8"))
    assert {(found.kind, found.id) for found in reported} >= {
        (kind, result[kind]["id"])
        for result, kind in named(results)
        if kind in ("server", "ssh_key", "domain")
    }


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_stack_shows_no_change_and_is_destroyed(
    version: str, form: str, warm: WarmPython, tmp_path: Path
) -> None:
    account = copied(version, form, tmp_path)
    with running(state=account, **record.OPTIONS) as emulator:
        program = make_program(
            engines.choose("offline"), emulator, tmp_path / "program", tmp_path / "home", form
        )
        program.declare(record.PROGRAM)
        charged = program.moved()
        loaded = program.stack.run(
            "stack", "import", "--file", str(record.HERE / version / form / "stack.json")
        )
        assert loaded.exit_code == 0, loaded.output

        previewed = program.run(program.stack.preview("--expect-no-changes"))
        assert previewed.changed == {}, previewed.output
        program.run(program.stack.refresh("--expect-no-changes"))
        program.run(program.stack.up("--expect-no-changes"))
        assert program.moved() == charged
        assert len(program.living) == 1

        program.run(program.stack.destroy())
        assert program.living == program.objects("ssh_keys") == program.objects("subscriptions") == []


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_playbook_finds_everything_that_it_made(version: str, tmp_path: Path) -> None:
    folder = record.HERE / version / "ansible"
    recorded: dict[str, Any] = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    with running(state=copied(version, "ansible", tmp_path), **record.OPTIONS) as emulator:
        control = Control(emulator.control_url)
        ledger = control("GET", "/ledger")
        run = tmp_path / "run"
        run.mkdir(mode=0o700)
        # The names of notes are hashes of the address of the service, which is another one in every test.
        old = recorded.get("scope") or name_of(recorded["account"], "live", recorded["base_url"])
        with Client(base_url=emulator.base_url, api_key=emulator.live_key) as client:
            new = account_scope(client)
        note = folder / "run" / f"{name_of(old, 'addresses of server 20001')}.json"
        copy = run / f"{name_of(new, 'addresses of server 20001')}.json"
        copy.write_bytes(note.read_bytes())
        copy.chmod(0o600)

        record.play(emulator, tmp_path, run, {})

        results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
        assert [result["changed"] for result in results] == [False] * 5
        assert control("GET", "/ledger") == ledger
        before = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        assert [result[kind]["id"] for result, kind in named(results)] == [
            result[kind]["id"] for result, kind in named(before)
        ]


def named(results: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    return list(zip(results, ("ssh_key", "server", "server_ip", "ptr", "domain"), strict=True))
