"""The error tree: every code has its class, its line and its next step."""

import httpx
import pytest

from pulumi_hosting.client import exceptions
from pulumi_hosting.client.exceptions import CODES, ApiError, error_class
from pulumi_hosting.client.words import PYTHON
from tests.client.support import refusal, scripted

pytestmark = pytest.mark.usefixtures("both")


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_every_code_says_what_is_wrong_and_what_to_do_next(code: exceptions.Code) -> None:
    kind = error_class(code.status, code.code)
    error = kind(
        status=code.status, code=code.code, message="details here", request_id="r-1", operation="get_server"
    )
    assert kind is not ApiError
    line = str(error)
    assert line.endswith(f"({code.status} {code.code}, get_server, request r-1)")
    assert f"Next: {PYTHON.fill(code.remedy)}" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, exceptions.BadRequest),
        (401, exceptions.Unauthorized),
        (402, exceptions.InsufficientFunds),
        (403, exceptions.Forbidden),
        (404, exceptions.NotFound),
        (405, exceptions.MethodNotAllowed),
        (409, exceptions.Conflict),
        (413, exceptions.PayloadTooLarge),
        (415, exceptions.UnsupportedMediaType),
        (418, ApiError),
        (429, exceptions.RateLimited),
        (500, exceptions.ServerError),
        (502, exceptions.Unavailable),
        (503, exceptions.Unavailable),
        (504, exceptions.Unavailable),
        (599, exceptions.ServerError),
    ],
)
def test_an_unknown_code_has_the_class_of_its_status(status: int, kind: type[ApiError]) -> None:
    assert error_class(status, "brand_new") is kind


def test_a_class_by_code_is_a_kind_of_the_class_by_status() -> None:
    for code in CODES.values():
        assert issubclass(error_class(code.status, code.code), error_class(code.status, ""))


def test_the_facts_of_single_codes() -> None:
    limited = exceptions.RateLimited(
        status=429, code="rate_limited", message="", details={"bucket": "expensive", "limit": 20}
    )
    assert limited.bucket == "expensive"
    assert exceptions.RateLimited(status=429, code="rate_limited", message="").bucket is None
    bare = exceptions.InsufficientFunds(
        status=402, code="insufficient_funds", message="", details={"required": "x"}
    )
    assert (bare.required, bare.balance, bare.shortfall) == (None, None, None)
    assert "does not cover" in str(bare)


def test_field_errors_are_part_of_the_line() -> None:
    error = exceptions.ValidationFailed(
        status=400, code="validation_error", message="no", details={"fields": {"name": "invalid"}}
    )
    assert "name: invalid" in str(error)


def test_an_unknown_code_is_reported_by_its_message_or_its_status() -> None:
    assert str(ApiError(status=418, code="teapot", message="short and stout")) == (
        "short and stout (418 teapot)"
    )
    assert str(ApiError(status=418, code="teapot", message="")) == "the service answered 418 (418 teapot)"


@pytest.mark.parametrize(
    "response",
    [
        refusal(404, "not_found", "the API is under /v1"),
        httpx.Response(404, html="<h1>Not Found</h1>"),
    ],
    ids=["envelope", "html"],
)
def test_a_404_to_a_request_that_names_no_object_means_a_wrong_base_url(response: httpx.Response) -> None:
    client, _ = scripted(response, base_url="https://example.com/api")
    with pytest.raises(ApiError) as caught:
        client.me()
    line = str(caught.value)
    assert line.startswith("no API answers at the base URL https://example.com/api. Next: correct")
    assert all(name in line for name in ("HOSTING_BASE_URL", "base_url", "/v1"))
    assert "account" not in line


def test_a_404_of_an_object_is_about_the_object() -> None:
    client, _ = scripted(refusal(404, "not_found"), knows_owner=True)
    with pytest.raises(exceptions.NotFound, match="not found on this account"):
        client.servers.get(20001)
    with pytest.raises(exceptions.NotFound, match="not found on this account"):
        client.catalog.quote(tariff_id=999, months=1)


def test_a_404_without_the_envelope_does_not_mean_that_an_object_is_gone() -> None:
    client, _ = scripted(httpx.Response(404, html="<h1>Not Found</h1>"))
    with pytest.raises(ApiError, match=r"no API answers at the base URL .* Next: correct") as caught:
        client.servers.get(20001)
    assert not isinstance(caught.value, exceptions.NotFound)
