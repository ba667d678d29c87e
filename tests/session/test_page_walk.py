"""How objects are read one by one: what the rule of ``page_walk`` costs, for every number of objects."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import TransportError
from pulumi_hosting.client.results import Damaged
from pulumi_hosting.session.page_walk import SINGLE_READS, PageWalk, SingleReads

PAGE = 100


class Account:
    """Lists ``count`` servers, newest first, and counts requests."""

    def __init__(self, count: int, single: SingleReads | None = None) -> None:
        self.ids = range(count, 0, -1)
        self.walk = PageWalk(single or SingleReads())
        self.requests, self.now = 0, 0.0

    def pages(self) -> Iterator[m.Page[Any]]:
        for start in range(0, max(len(self.ids), 1), PAGE):
            self.requests += 1
            rows = [m.Server(id=id, name="x", status="active") for id in self.ids[start : start + PAGE]]
            more = start + PAGE < len(self.ids)
            yield m.Page[Any](data=rows, next_cursor="more" if more else None)

    def read(self, id: int) -> None:
        """As an engine reads it: from the list, else singly."""
        found = self.walk.find(str(id), self.pages, lambda: self.now, 60.0)
        if found is None:
            self.requests += 1
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
    single = SingleReads()
    servers, domains = Account(1000, single), Account(200, single)
    for id in (1, 2, 3):
        servers.read(id)
    for id in range(1, 201):
        domains.read(id)
    assert (servers.requests, domains.requests) == (1 + 3, 2)


def test_pages_are_read_again_when_they_are_old_or_a_write_came() -> None:
    account = Account(50)
    account.read(1)
    account.now = 61.0
    account.read(1)
    account.walk.forget()
    account.read(1)
    assert account.requests == 3


def test_what_was_written_is_read_singly_until_a_read_showed_it() -> None:
    account = Account(1000)
    account.read(1000)
    account.walk.remember("1000", None)
    account.read(1000)
    account.walk.remember("1000", m.Server(id=1000, name="x", status="stopped"))
    account.read(1000)
    assert account.requests == 1 + 1


def test_a_page_that_fails_is_asked_for_again() -> None:
    account = Account(50)

    def fail() -> Iterator[m.Page[Any]]:
        raise TransportError("lost", outcome_unknown=False)
        yield

    with pytest.raises(TransportError):
        account.walk.find("1", fail, lambda: 0.0, 60.0)
    account.read(1)
    assert account.requests == 1


def test_a_damaged_object_is_read_singly() -> None:
    walk = PageWalk(SingleReads())
    page = m.Page[Any].model_construct(data=[Damaged("list_servers", 1, "no name")], next_cursor=None)
    assert walk.find("1", lambda: iter([page]), lambda: 0.0, 60.0) is None
