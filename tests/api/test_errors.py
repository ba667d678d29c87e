"""The error tree: every code has its class, its line and its next step."""

import pytest

from pulumi_hosting.api import errors
from pulumi_hosting.api.errors import CODES, ApiError, error_class


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_every_code_says_what_is_wrong_and_what_to_do_next(code: errors.Code) -> None:
    kind = error_class(code.status, code.code)
    error = kind(status=code.status, code=code.code, message="details here", request_id="r-1", operation="get_server")
    assert kind is not ApiError
    line = str(error)
    assert line.startswith("get_server: ")
    assert line.endswith(f"({code.status} {code.code}, request r-1)")
    assert f"Next: {code.remedy}" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (402, errors.InsufficientFunds),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.MethodNotAllowed),
        (409, errors.Conflict),
        (413, errors.PayloadTooLarge),
        (415, errors.UnsupportedMediaType),
        (418, ApiError),
        (429, errors.RateLimited),
        (500, errors.ServerError),
        (502, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
        (599, errors.ServerError),
    ],
)
def test_an_unknown_code_has_the_class_of_its_status(status: int, kind: type[ApiError]) -> None:
    assert error_class(status, "brand_new") is kind


def test_a_class_by_code_is_a_kind_of_the_class_by_status() -> None:
    for code in CODES.values():
        assert issubclass(error_class(code.status, code.code), error_class(code.status, ""))


def test_the_facts_of_single_codes() -> None:
    limited = errors.RateLimited(status=429, code="rate_limited", message="", details={"bucket": "expensive", "limit": 20})
    assert limited.bucket == "expensive"
    assert errors.RateLimited(status=429, code="rate_limited", message="").bucket is None
    state = errors.ServiceState(status=409, code="service_state", message="", details={"status": "suspended"})
    assert state.service_status == "suspended"
    assert errors.ServiceState(status=409, code="service_state", message="").service_status is None
    bare = errors.InsufficientFunds(status=402, code="insufficient_funds", message="", details={"required": "x"})
    assert (bare.required, bare.balance, bare.shortfall) == (None, None, None)
    assert "does not cover" in str(bare)


def test_field_errors_are_part_of_the_line() -> None:
    error = errors.ValidationFailed(status=400, code="validation_error", message="no", details={"fields": {"name": "invalid"}})
    assert "name: invalid" in str(error)


def test_an_unknown_code_is_told_by_its_message_or_its_status() -> None:
    assert str(ApiError(status=418, code="teapot", message="short and stout")) == "short and stout (418 teapot)"
    assert str(ApiError(status=418, code="teapot", message="")) == "the service answered 418 (418 teapot)"
