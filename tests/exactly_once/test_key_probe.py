"""What a probe with a key shows."""

import pytest

from pulumi_hosting.client.exceptions import ApiError, error_class
from pulumi_hosting.exactly_once.key_probe import NONEXISTENT_ID, key_is_used, nonexistent_id


def _refused(status: int, code: str) -> bool:
    def probe() -> None:
        raise error_class(status, code)(status=status, code=code, message="")

    return key_is_used(probe)


@pytest.mark.parametrize("code", ["idempotency_conflict", "idempotency_in_progress"])
def test_a_conflict_shows_the_key_to_be_bound(code: str) -> None:
    assert _refused(409, code)


@pytest.mark.parametrize(
    ("status", "code"), [(404, "not_found"), (409, "service_state"), (429, "rate_limited"), (500, "internal")]
)
def test_any_other_refusal_proves_nothing(status: int, code: str) -> None:
    assert not _refused(status, code)


def test_an_accepted_probe_proves_nothing() -> None:
    assert not key_is_used(lambda: None)


def test_what_is_no_answer_is_an_error() -> None:
    def probe() -> None:
        raise ConnectionError

    assert not issubclass(ConnectionError, ApiError)
    with pytest.raises(ConnectionError):
        key_is_used(probe)


def test_ids_that_nothing_has_are_exact_in_every_reader_and_differ() -> None:
    ids = [nonexistent_id() for _ in range(100)]
    assert len(set(ids)) > 90
    assert all(NONEXISTENT_ID - 2**40 < id <= NONEXISTENT_ID < 2**53 for id in ids)
    assert max(ids) - min(ids) > 2**30
