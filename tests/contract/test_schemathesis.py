"""schemathesis sends the emulator requests that its OpenAPI document allows, and many that it does not."""

from collections import Counter

import pytest
from schemathesis import Config, openapi
from schemathesis.engine import events, from_schema

from pulumi_hosting.api.operations import OPERATIONS
from tests.contract.harness import ApiHarness

CHECKS = {
    # The document does not say which ids exist or what the balance covers: valid data may be refused.
    "positive_data_acceptance": {"enabled": False},
    # Sends thousands of invalid keys and takes their rate limit for an error; test_operations.py tests each
    # operation.
    "ignored_auth": {"enabled": False},
}
REVOKE = "revoke_api_key"
LABELS = {f"{operation.method} {operation.path}": operation for operation in OPERATIONS}


class Findings:
    """The failures of a run, and the statuses of each operation."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.statuses: dict[str, Counter[int]] = {}

    def add(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            self.failures.append(str(event))
        if not isinstance(event, events.ScenarioFinished):
            return
        for case_id, checks in event.recorder.checks.items():
            for check in checks:
                if check.failure_info is not None:
                    failure = check.failure_info.failure
                    self.failures.append(
                        f"{event.label}: {failure.title}: {failure.message}\n{check.failure_info.code_sample}"
                    )
            answer = event.recorder.interactions[case_id].response
            label = event.recorder.cases[case_id].value.operation.label
            if answer is not None:
                self.statuses.setdefault(label, Counter())[answer.status_code] += 1


def run(
    api_over_http: ApiHarness, key: str, *, examples: int, coverage: bool, revoke: bool = False
) -> Findings:
    config = Config.from_dict(
        {
            "headers": {"Authorization": f"Bearer {key}"},
            "seed": 1,
            "generation": {
                "max-examples": examples,
                "deterministic": True,
                "with-security-parameters": False,
            },
            "checks": CHECKS,
            "phases": {"coverage": {"enabled": coverage, "unexpected-methods": ["TRACE"]}},
        }
    )
    whole = openapi.from_url(f"{api_over_http.base_url}/openapi.json", config=config)
    schema = whole.include(operation_id=REVOKE) if revoke else whole.exclude(operation_id=REVOKE)
    findings = Findings()
    for event in from_schema(schema).execute():
        findings.add(event)
    return findings


def new_key(api_over_http: ApiHarness, mode: str) -> str:
    room = {"scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
    key: str = api_over_http.control("POST", "/keys", {"mode": mode, **room})["key"]
    return key


def create_objects(api_over_http: ApiHarness) -> None:
    """An object of every kind, so that ids in answers exist."""
    api_over_http.server()
    api_over_http.ssh_key()
    api_over_http.domain()
    api_over_http.invoice_id()
    api_over_http.delivery_id()


# `make test` sends a few random requests to every operation. `make test-all` adds boundary values of every
# field, once: the other
# dialect and test keys are validated by the same code, so random data is enough for them.
@pytest.mark.parametrize(
    ("dialect", "mode", "coverage", "examples"),
    [
        ("spec", "live", False, 2),
        pytest.param("spec", "live", True, 5, marks=pytest.mark.slow),
        pytest.param("live", "live", False, 15, marks=pytest.mark.slow),
        pytest.param("spec", "test", False, 5, marks=pytest.mark.slow),
        pytest.param("live", "test", False, 5, marks=pytest.mark.slow),
    ],
    indirect=["dialect"],
)
def test_the_emulator_keeps_to_its_own_document(
    api_over_http: ApiHarness, mode: str, coverage: bool, examples: int
) -> None:
    create_objects(api_over_http)
    key = new_key(api_over_http, mode)
    found = run(api_over_http, key, examples=examples, coverage=coverage)
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


def test_revoking_keys_keeps_to_the_document_too(api_over_http: ApiHarness) -> None:
    found = run(api_over_http, new_key(api_over_http, "live"), examples=20, coverage=True, revoke=True)
    assert found.failures == []
    assert set(found.statuses) == {"DELETE /keys/{key_id}"}
