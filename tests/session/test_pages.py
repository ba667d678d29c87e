"""How objects are read one by one: what the rule of ``find`` costs, for every number of objects."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import TransportError
from pulumi_hosting.client.results import Damaged
from pulumi_hosting.session.account_snapshot import SINGLE_READS, AccountSnapshot, Change

PAGE = 100


LIST = ("servers", "list_servers")


def server(id: int, **more: Any) -> m.Server:
    return m.Server(id=id, **{"name": "x", "status": "active", **more})


class Account:
    """Lists ``count`` servers, newest first, and counts requests."""

    def __init__(self, count: int) -> None:
        self.ids = range(count, 0, -1)
        self.snapshot = AccountSnapshot()
        self.requests, self.now = 0, 0.0

    def page(self, operation: str, /, *, cursor: str | None) -> m.Page[Any]:
        self.requests += 1
        start = int(cursor or 0)
        rows = [server(id) for id in self.ids[start : start + PAGE]]
        more = start + PAGE < len(self.ids)
        return m.Page[Any](data=rows, next_cursor=str(start + PAGE) if more else None)

    def found(self, id: int) -> Any:
        return self.snapshot.find(*LIST, str(id), 60.0, self.page, lambda: self.now)

    def read(self, id: int) -> None:
        """As an engine reads it: from the list, else singly."""
        found = self.found(id)
        if found is None:
            self.requests += 1
            if id in self.ids:
                self.snapshot.apply(Change("set", *LIST, str(id), server(id)))
        else:
            assert found.id == id


def cost(count: int, ids: list[int], parallel: int = 1) -> int:
    account = Account(count)
    if parallel == 1:
        for id in ids:
            account.read(id)
    else:
        with ThreadPoolExecutor(parallel) as pool:
            list(pool.map(account.read, ids))
    return account.requests


@pytest.mark.parametrize("count", [1, 37, 100, 101, 400, 1000, 1600])
def test_no_more_requests_than_objects_or_pages_and_three(count: int) -> None:
    """The oldest are on the last page, which is the worst place. The bar holds but for stacks with more than
    3 servers and less than one hundredth of the account's."""
    pages = -(-count // PAGE)
    for n in sorted({*range(1, min(count, 30)), count}):
        oldest = list(range(1, n + 1))
        for parallel in (1, 4):
            spent = cost(count, oldest, parallel)
            assert spent <= pages + SINGLE_READS
            if n <= SINGLE_READS or n >= pages:
                assert spent <= min(n, pages) + SINGLE_READS, (n, parallel)


@pytest.mark.parametrize("parallel", [1, 4, 16])
def test_a_large_account_is_walked_with_few_single_reads(parallel: int) -> None:
    assert cost(5000, list(range(1, 5001)), parallel) <= 50 + SINGLE_READS + 1


def test_a_small_stack_never_walks_all_of_a_huge_account() -> None:
    assert cost(100_000, list(range(1, 5))) == SINGLE_READS + 16 + 1
    assert cost(100_000, [1]) == 2


def test_newest_first_costs_one_page() -> None:
    assert cost(1000, list(range(1000, 900, -1))) == 1


def test_what_the_list_does_not_show_is_read_singly_each() -> None:
    account = Account(250)
    for id in (*range(1, 251), 900, 901):
        account.read(id)
    assert account.requests == 3 + SINGLE_READS + 2


def test_single_reads_of_two_kinds_count_together() -> None:
    servers, domains = Account(1000), Account(200)
    domains.snapshot = servers.snapshot
    for id in (1, 2, 3):
        servers.read(id)
    for id in range(1, 201):
        domains.snapshot.find("domains", "list_domains", str(id), 60.0, domains.page, lambda: 0.0)
    assert (servers.requests, domains.requests) == (1 + 3, 2)


def test_pages_are_read_again_when_they_are_old_or_forgotten() -> None:
    account = Account(50)
    account.read(1)
    account.now = 61.0
    account.read(1)
    account.snapshot.forget("servers")
    account.read(1)
    assert account.requests == 3


def test_what_was_written_is_read_singly_until_its_new_form_is_known() -> None:
    account = Account(1000)
    account.read(1000)
    account.snapshot.apply(Change("doubt", *LIST, "1000"))
    assert account.found(1000) is None
    account.snapshot.apply(Change("set", *LIST, "1000", server(1000, name="new")))
    assert account.found(1000).name == "new"
    account.snapshot.apply(Change("delete", *LIST, "1000"))
    assert account.found(1000) is None
    assert account.requests == 1


def test_a_write_while_a_page_is_under_way_is_newer_than_the_page() -> None:
    account = Account(1000)

    def page(operation: str, /, *, cursor: str | None) -> m.Page[Any]:
        found = account.page(operation, cursor=cursor)
        account.snapshot.apply(Change("set", *LIST, "1000", server(1000, name="new")))
        account.snapshot.apply(Change("delete", *LIST, "999"))
        return found

    assert account.snapshot.find(*LIST, "1000", 60.0, page, lambda: 0.0).name == "new"
    assert account.snapshot.row(*LIST, "999", 0.0, 60.0) is None


def test_a_whole_list_has_all_pages_and_serves_single_objects() -> None:
    account = Account(250)
    account.read(250)
    listed = account.snapshot.listed(*LIST, account.page, lambda: 0.0, 60.0)
    assert [row.id for row in listed] == [*range(250, 0, -1)]
    account.read(1)
    assert account.requests == 3


def test_a_part_that_was_asked_for_whole_serves_single_objects() -> None:
    account = Account(5)
    account.snapshot.get("servers", lambda: {"list_servers": [server(4)]}, lambda: 0.0, 60.0)
    assert account.found(4).id == 4
    assert account.requests == 0


def test_pages_do_not_stand_for_a_whole_part() -> None:
    account = Account(5)
    account.read(5)
    asked = account.snapshot.get("servers", lambda: {"list_servers": [server(4)]}, lambda: 0.0, 60.0)
    assert [row.id for row in asked["list_servers"]] == [4]


def test_a_task_of_a_playbook_begins_with_single_reads() -> None:
    account = Account(1000)
    for id in (1, 2, 3):
        assert account.snapshot.find(*LIST, str(id), 60.0, account.page, lambda: 0.0, 0) is None
    assert account.requests == 0
    account.snapshot.find(*LIST, "4", 60.0, account.page, lambda: 0.0, 0)
    assert account.requests == 10


def test_a_page_that_fails_is_asked_for_again() -> None:
    account = Account(50)

    def fail(operation: str, /, *, cursor: str | None) -> m.Page[Any]:
        raise TransportError("lost", outcome_unknown=False)

    with pytest.raises(TransportError):
        account.snapshot.find(*LIST, "1", 60.0, fail, lambda: 0.0)
    account.read(1)
    assert account.requests == 1


def test_a_damaged_object_is_read_singly() -> None:
    page = m.Page[Any].model_construct(data=[Damaged("list_servers", 1, "no name")], next_cursor=None)
    assert AccountSnapshot().find(*LIST, "1", 60.0, lambda operation, /, cursor: page, lambda: 0.0) is None
