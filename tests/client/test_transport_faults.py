"""A sample of the broken exchanges, and what they have shown; ``make prove`` tries all of them."""

import pytest

from pulumi_hosting.client.exceptions import InvalidResponse
from tests.client.faults import FAULTS
from tests.client.responses import read
from tests.client.transport_faults import problems

EVERY = 127
"""So many broken exchanges are one in the sample: a prime, so that each fault and each operation is in it."""


def test_a_broken_exchange_is_an_error_of_ours_or_gives_the_whole_answer() -> None:
    tried, wrong = problems(EVERY)
    assert wrong == []
    assert tried > 100


def test_faults_are_told_apart_by_their_names() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b"[]", b"null", b'{"error": {"code": "x"}}'])
def test_a_page_does_not_show_that_a_key_is_deleted(body: bytes) -> None:
    with pytest.raises(InvalidResponse, match="should be empty"):
        read("delete_ssh_key", body)
    assert read("delete_ssh_key", b'{"id": 1, "status": "deleted"}') == read("delete_ssh_key", b"", 204)


@pytest.mark.parametrize("error", [None, [], "text", {}, {"code": "not_found", "message": "no such server"}])
@pytest.mark.parametrize("operation", ["delete_server", "delete_server_ip", "delete_webhook", "get_openapi"])
def test_an_error_with_the_status_of_a_success_is_an_error(operation: str, error: object) -> None:
    with pytest.raises(InvalidResponse):
        read(operation, {"error": error})


def test_a_file_that_ends_early_is_an_error() -> None:
    whole = b"%PDF-1.7" + b" " * 2000 + b"%%EOF\n"
    assert read("get_invoice_pdf", whole) == whole
    with pytest.raises(InvalidResponse, match="ends early"):
        read("get_invoice_pdf", whole[:-3])
