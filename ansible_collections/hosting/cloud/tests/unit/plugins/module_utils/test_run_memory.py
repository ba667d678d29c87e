# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""The memory of a run: charges, planned changes and reads. In memory and in files, without a task."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.hosting.cloud.plugins.module_utils.run_memory import (
    CHARGED,
    UNKNOWN_ACCOUNT,
    ProcessStorage,
    RunMemory,
    planned_id,
)
from ansible_collections.hosting.cloud.plugins.plugin_utils.run_files import RunFiles
from pulumi_hosting.planning.budget import Budget, Limit
from pulumi_hosting.session.cost import Cost

FIVE = Cost(Decimal("5.00"), "EUR", "server web-1")
PAID = {"amount": "5.00", "currency": "EUR"}


@pytest.fixture(params=["memory", "files"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> ProcessStorage:
    return ProcessStorage() if request.param == "memory" else RunFiles(tmp_path)


def memory(storage: ProcessStorage, account: str = "one", **options: Any) -> RunMemory:
    return RunMemory(storage, account=lambda: account, **options)


def book(memory: RunMemory, identity: str, limit: str | None = None, cost: Cost = FIVE) -> str | None:
    """Book a purchase as a task with this ``max_charge`` does."""
    return Budget(Limit("max_charge", limit, "leave tasks out", memory.allowance), memory).book(
        identity, cost
    )


# --- charged


def test_purchases_of_all_tasks_count_towards_the_limit(storage: ProcessStorage) -> None:
    assert book(memory(storage), "server/a", "9") is None
    refused = book(memory(storage), "server/b", "9")
    assert refused is not None
    assert "this run would charge 10.00 EUR, more than max_charge 9" in refused
    assert memory(storage).spent() == {"EUR": "5.00"}


def test_a_purchase_that_is_booked_again_counts_once(storage: ProcessStorage) -> None:
    for _attempt in range(3):
        assert book(memory(storage), "server/a", "5") is None
    assert memory(storage).spent() == {"EUR": "5.00"}


def test_a_purchase_whose_higher_price_is_refused_stays_counted(storage: ProcessStorage) -> None:
    """It may have been charged."""
    book(memory(storage), "server/a")
    expensive = replace(FIVE, amount=Decimal("9.01"))
    assert "would charge 9.01 EUR, more than max_charge 9;" in str(
        book(memory(storage), "server/a", "9", expensive)
    )
    assert memory(storage).spent() == {"EUR": "5.00"}


def test_a_task_that_buys_twice_counts_both_once(storage: ProcessStorage) -> None:
    budget = Budget(Limit("max_charge", "12"), memory(storage))
    assert [budget.book(f"server/{name}", FIVE) is None for name in "aabc"] == [True, True, True, False]
    assert memory(storage).spent() == {"EUR": "10.00"}


def test_a_settled_purchase_counts_as_what_it_charged(storage: ProcessStorage) -> None:
    book(memory(storage), "server/a")
    memory(storage).settle("server/a", None)
    assert memory(storage).spent() == {}
    book(memory(storage), "server/a")
    memory(storage).settle("server/a", {"amount": "7.50", "currency": "EUR"})
    assert memory(storage).spent() == {"EUR": "7.50"}


def test_a_purchase_of_several_hosts_stays_counted_until_the_last_of_them_ends(
    storage: ProcessStorage,
) -> None:
    first, second = memory(storage, holder="h1"), memory(storage, holder="h2")
    book(first, "server/a")
    book(second, "server/a")
    first.settle("server/a", None)
    assert second.spent() == {"EUR": "5.00"}
    second.settle("server/a", PAID)
    assert second.spent() == {"EUR": "5.00"}


def test_a_charge_is_claimed_once(storage: ProcessStorage) -> None:
    assert [memory(storage).claim("server/7") for _host in "ab"] == [True, False]
    assert memory(storage, "two").claim("server/7")


def test_a_stopped_account_refuses_every_purchase(storage: ProcessStorage) -> None:
    memory(storage).stop("this run orders nothing more")
    assert book(memory(storage), "server/a") == memory(storage).stopped == "this run orders nothing more"
    assert book(memory(storage, "two"), "server/a") is None


def test_accounts_are_apart_and_an_unknown_one_counts_for_all(storage: ProcessStorage) -> None:
    book(memory(storage, "one"), "server/a")
    assert memory(storage, "two").spent() == {}
    assert memory(storage, UNKNOWN_ACCOUNT).spent() == {"EUR": "5.00"}
    book(memory(storage, UNKNOWN_ACCOUNT), "server/b")
    assert memory(storage, "two").spent() == {"EUR": "5.00"}


def test_predicted_charges_are_apart_from_real_ones(storage: ProcessStorage) -> None:
    book(memory(storage, check_mode=True), "server/a")
    assert memory(storage, check_mode=True).spent() == {"EUR": "5.00"}
    assert memory(storage).spent() == {}


def test_the_account_is_asked_for_once_and_only_for_charges() -> None:
    asked: list[str] = []
    found = RunMemory(ProcessStorage(), account=lambda: asked.append("me") or "one")
    found.predict(["delete", "server", "7"])
    assert found.effects
    assert asked == []
    book(found, "server/a")
    found.settle("server/a", PAID)
    assert asked == ["me"]


# --- what travels to a module's process


def test_a_process_knows_what_the_run_spent_and_planned(storage: ProcessStorage) -> None:
    controller = memory(storage, key="k")
    book(controller, "server/a")
    controller.predict(["delete", "server", "7"])
    process = RunMemory.of_controller(controller.for_module(charges=True), check_mode=False)
    assert process.effects == [["delete", "server", "7"]]
    refused = book(process, "server/b", "9")
    assert refused is not None
    assert "10.00 EUR" in refused
    controller.stop("enough")
    assert RunMemory.of_controller(controller.for_module(charges=True), check_mode=False).stopped == "enough"


def test_a_task_that_goes_on_alone_may_charge_what_was_booked() -> None:
    alone = RunMemory.of_controller({"booked": {"amount": "5.00"}}, check_mode=False)
    assert book(alone, "server/a", "99") is None
    refused = book(alone, "server/b", "99")
    assert refused is not None
    assert "more than the 5.00 that were booked for this task" in refused


def test_a_rehearsal_books_for_real_and_predicts_nothing(storage: ProcessStorage) -> None:
    real = memory(storage)
    real.predict(["delete", "server", "7"])
    rehearsal = real.without_planned()
    book(rehearsal, "server/a")
    rehearsal.predict_new("server", "a", {"name": "a"})
    assert real.spent() == {"EUR": "5.00"}
    assert real.effects == [["delete", "server", "7"]]
    assert len(rehearsal.effects) == 1


# --- planned


def test_new_changed_and_deleted_objects(storage: ProcessStorage) -> None:
    planned = memory(storage)
    id = str(planned.predict_new("server", "a", {"name": "a", "billing": {"auto_renew": True}}))
    planned.predict_change("server", id, {"name": "b", "billing.auto_renew": False})
    planned.predict_change("server", 7, {"name": "renamed"})
    planned.predict(["delete", "server", "8"])
    added, changed, deleted = memory(storage).planned_objects("server")
    assert id == str(planned_id("server", "a"))
    assert added == {id: {"id": int(id), "name": "b", "billing": {"auto_renew": False}}}
    assert changed == {"7": {"name": "renamed"}}
    assert deleted == {"8"}
    assert memory(storage).planned_objects("domain") == ({}, {}, set())


def test_an_object_that_is_made_again_is_not_deleted(storage: ProcessStorage) -> None:
    planned = memory(storage)
    id = planned.predict_new("server", "a", {"name": "a"})
    planned.predict(["delete", "server", str(id)])
    assert planned.planned_objects("server") == ({}, {}, {str(id)})
    planned.predict_new("server", "a", {"name": "a"})
    assert planned.planned_objects("server")[2] == set()


def test_addresses_belong_to_their_server(storage: ProcessStorage) -> None:
    planned = memory(storage)
    planned.predict_new("server_ip", "7/0", {"server_id": 7})
    planned.predict(["delete", "server_ip", "7/3"])
    planned.predict(["delete", "server_ip", "8/4"])
    bought, released = planned.planned_addresses("7")
    assert [item["server_id"] for item in bought] == [7]
    assert released == {"3"}


def test_planned_charges_and_a_revoked_key(storage: ProcessStorage) -> None:
    planned = memory(storage)
    planned.predict(["charge", "5.00"])
    planned.predict(["charge", "-1.50"])
    assert planned.planned_charges == Decimal("3.50")
    assert not planned.key_is_revoked
    planned.predict(["revoke"])
    assert planned.key_is_revoked


def test_what_one_key_would_do_is_not_planned_for_another(storage: ProcessStorage) -> None:
    memory(storage, key="live").predict(["delete", "server", "7"])
    assert memory(storage, key="test").effects == []


# --- reads


def test_reads_are_shared_within_a_task(storage: ProcessStorage) -> None:
    reads = memory(storage).reads
    one = memory(storage)
    assert one.reads is one.reads
    assert one.reads is not reads
    assert [
        one.reads.get(("servers",), fetch, lambda: 0.0, 60.0) for fetch in (lambda: "first", lambda: "second")
    ] == ["first"] * 2


# --- files


def _book(folder: Path, number: int) -> None:
    for purchase in range(5):
        book(memory(RunFiles(folder)), f"server/{number}-{purchase}")


def test_processes_do_not_lose_what_others_booked(tmp_path: Path) -> None:
    workers = [
        multiprocessing.get_context("fork").Process(target=_book, args=(tmp_path, number))
        for number in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert memory(RunFiles(tmp_path)).spent() == {"EUR": "100.00"}


def test_files_are_private_and_no_symbolic_link_is_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    folder.mkdir()
    book(memory(RunFiles(folder)), "server/a")
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    other = tmp_path / "other"
    other.mkdir()
    (other / f"hosting.cloud.{CHARGED}.json").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic"):
        book(memory(RunFiles(other)), "server/a")
    assert not elsewhere.exists()


def test_planned_changes_are_forgotten_when_something_really_changed(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    memory(files).predict(["delete", "server", "7"])
    book(memory(files), "server/a")
    files.forget_planned()
    assert memory(files).effects == []
    assert memory(files).spent() == {"EUR": "5.00"}
