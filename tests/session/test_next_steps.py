"""The step that follows an error, after what a refused key needs first."""

import pytest

from pulumi_hosting.api.error_codes import CODES, KEY_REFUSED
from pulumi_hosting.client.exceptions import ApiError, TransportError
from pulumi_hosting.client.words import PYTHON
from pulumi_hosting.session.errors import and_then

STEP = "pulumi up, which sets the rest"


@pytest.mark.parametrize("code", sorted(KEY_REFUSED))
def test_a_refused_key_comes_first(code: str) -> None:
    error = ApiError(status=CODES[code].status, code=code, message="")
    assert and_then(error, STEP) == f"Next: {PYTHON.fill(CODES[code].remedy)}, then {STEP}"


@pytest.mark.parametrize(
    "error",
    [
        ApiError(status=403, code="insufficient_scope", message=""),
        ApiError(status=503, code="temporarily_unavailable", message=""),
        TransportError("cannot reach", outcome_unknown=True),
        RuntimeError("another"),
    ],
)
def test_after_other_errors_the_step_is_enough(error: Exception) -> None:
    assert and_then(error, STEP) == f"Next: {STEP}"
