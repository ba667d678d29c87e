"""The note of which of an order's keys are used: a help that costs nothing if it is missing."""

from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.exactly_once import generation, local_files
from pulumi_hosting.session.request import Request
from tests.exactly_once.service import Service

NO_IDS: frozenset[str] = frozenset()


@pytest.fixture
def request_() -> Request:
    return Service([]).request()


def again(request: Request, identity: str = "") -> Request:
    """A later run of the declaration on this machine."""
    return Request(request.session, identity or request.identity)


def test_without_a_note_it_is_the_first(request_: Request) -> None:
    assert generation.first(request_, 0, NO_IDS) == 0
    assert generation.first(request_, 0, frozenset({"20001"})) == 0


@pytest.mark.parametrize("number", [0, 7])
def test_the_key_of_an_accepted_order_is_sent_again_while_its_object_may_be_lost(
    request_: Request, number: int
) -> None:
    generation.remember(request_, 0, number, "20001")
    assert generation.first(again(request_), 0, NO_IDS) == number
    assert generation.first(again(request_), 0, frozenset({"20002"})) == number


def test_after_it_the_next_key_is_the_first_that_may_be_unused(request_: Request) -> None:
    generation.remember(request_, 0, 3, "20001")
    assert generation.first(again(request_), 0, frozenset({"20001"})) == 4  # it is had, or gone
    generation.is_over(again(request_), "20001")
    assert generation.first(again(request_), 0, NO_IDS) == 4


def test_the_end_of_another_object_changes_nothing(request_: Request) -> None:
    generation.remember(request_, 0, 3, "20001")
    generation.is_over(again(request_), "20002")
    assert generation.first(again(request_), 0, NO_IDS) == 3


def test_an_order_that_was_under_way_ends_with_its_server(request_: Request) -> None:
    """The server had no id yet when the order was accepted."""
    generation.remember(request_, 0, 3, "order:40001")
    assert generation.first(again(request_), 0, NO_IDS) == 3
    generation.is_over(again(request_), "20001")
    assert generation.first(again(request_), 0, NO_IDS) == 4


def test_an_order_is_under_way_until_its_server_is_seen(request_: Request) -> None:
    generation.remember(request_, 1, 0, "order:40001")
    assert [generation.order_under_way(again(request_), attempt) for attempt in (0, 1, 2)] == [
        40001,
        40001,
        None,
    ]
    generation.arrived(again(request_), "20001")
    assert generation.order_under_way(again(request_), 0) is None
    assert generation.first(again(request_), 1, frozenset({"20001"})) == 1


def test_the_end_of_what_was_never_noted_is_no_note(request_: Request) -> None:
    generation.is_over(request_, "20001")
    assert generation.first(again(request_), 0, NO_IDS) == 0


def test_another_attempt_has_keys_of_its_own(request_: Request) -> None:
    generation.remember(request_, 1, 3, "20001")
    assert generation.first(again(request_), 1, NO_IDS) == 3
    assert generation.first(again(request_), 0, NO_IDS) == 0


@pytest.mark.parametrize("changes", [{"account_id": 8}, {"base_url": "https://other.example/v1"}], ids=str)
def test_notes_of_other_declarations_and_accounts_are_apart(
    request_: Request, changes: dict[str, Any]
) -> None:
    generation.remember(request_, 0, 3, "20001")
    assert generation.first(again(request_, "pulumi:t/dev/server/b"), 0, NO_IDS) == 0
    assert generation.first(Service([], **changes).request(), 0, NO_IDS) == 0


def test_the_keys_of_a_test_key_are_random_and_none_is_noted() -> None:
    request = Service([], is_test_key=True).request()
    generation.remember(request, 0, 3, "20001")
    assert generation.first(again(request), 0, NO_IDS) == 0


def test_what_cannot_be_written_or_read_stops_nothing(
    request_: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unusable = tmp_path / "file"
    unusable.write_text("")
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(unusable))
    generation.remember(request_, 0, 3, "20001")
    generation.is_over(request_, "20001")
    assert generation.first(request_, 0, NO_IDS) == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", "{", '{"attempt": 0}'])
def test_a_damaged_note_stops_nothing(request_: Request, text: str) -> None:
    generation.remember(request_, 0, 3, "20001")
    (path,) = local_files.directory().glob("*.order")
    path.write_text(text)
    assert generation.first(request_, 0, NO_IDS) == 0
    generation.is_over(request_, "20001")
