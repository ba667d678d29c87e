"""schemathesis sends the emulator requests that its OpenAPI document allows, and many that it does not."""

import pytest

from tests.certify.sentences import DOCUMENT
from tests.contract.harness import ApiHarness
from tests.contract.schema_cases import LABELS, REFUSED, REVOKE, create_objects, new_key, run


# A few random requests to every operation, examples and boundary values of every field in both dialects, and
# a sample of `make prove`, which runs every phase.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "mode", "phases", "examples"),
    [
        ("spec", "live", ("fuzzing",), 2),
        ("spec", "live", ("examples", "coverage"), 1),
        ("live", "live", ("examples", "coverage"), 1),
        ("live", "test", ("fuzzing", "stateful"), 4),
    ],
    indirect=["dialect"],
)
def test_the_emulator_keeps_to_its_own_document(
    api_over_http: ApiHarness, mode: str, phases: tuple[str, ...], examples: int
) -> None:
    create_objects(api_over_http)
    key = new_key(api_over_http, mode)
    found = run(api_over_http, key, examples=examples, phases=phases)
    assert found.failures == []
    assert set(found.statuses) >= {
        label for label, operation in LABELS.items() if operation.auth and operation.id != REVOKE
    }
    # The run is meaningful: many operations succeeded, and the key was valid to the end.
    succeeded = [
        label for label, statuses in found.statuses.items() if any(200 <= status < 300 for status in statuses)
    ]
    assert len(succeeded) >= 20, sorted(set(found.statuses) - set(succeeded))
    with api_over_http.client(key) as client:
        assert client.me().livemode is (mode == "live")


def test_the_document_says_why_a_valid_request_is_refused() -> None:
    document = DOCUMENT.read_text("utf-8")
    assert [words for words in REFUSED.values() if words not in document] == []


def test_revoking_keys_keeps_to_the_document_too(api_over_http: ApiHarness) -> None:
    found = run(
        api_over_http,
        new_key(api_over_http, "live"),
        examples=20,
        phases=("coverage", "fuzzing"),
        revoke=True,
    )
    assert found.failures == []
    assert set(found.statuses) == {"DELETE /keys/{key_id}"}
