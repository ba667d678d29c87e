"""schemathesis asks the emulator everything its own OpenAPI document allows, and much that it does not."""

from collections import Counter

import httpx
import pytest
from openapi_spec_validator import validate
from schemathesis import Config, openapi
from schemathesis.engine import events, from_schema

from pulumi_hosting.api.openapi import document
from pulumi_hosting.api.operations import OPERATIONS
from tests.contract.stage import ApiHarness

CHECKS = {
    # A document cannot say which ids exist, that months exclude hours, or what the balance covers: a refusal of good-looking data is right.
    "positive_data_acceptance": {"enabled": False},
    # Asks thousands of times with invalid keys and takes the limit on those for an error; tested operation by operation instead.
    "ignored_auth": {"enabled": False},
}
REVOKE = "revoke_api_key"
LABELS = {f"{operation.method} {operation.path}": operation for operation in OPERATIONS}


class Findings:
    """What a run found: failures in words, and which statuses each operation answered."""

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
                    self.failures.append(f"{event.label}: {failure.title}: {failure.message}\n{check.failure_info.code_sample}")
            answer = event.recorder.interactions[case_id].response
            label = event.recorder.cases[case_id].value.operation.label
            if answer is not None:
                self.statuses.setdefault(label, Counter())[answer.status_code] += 1


def run(stage: ApiHarness, key: str, *, examples: int, coverage: bool, revoke: bool = False) -> Findings:
    config = Config.from_dict(
        {
            "headers": {"Authorization": f"Bearer {key}"},
            "seed": 1,
            "generation": {"max-examples": examples, "deterministic": True, "with-security-parameters": False},
            "checks": CHECKS,
            "phases": {"coverage": {"enabled": coverage, "unexpected-methods": ["TRACE"]}},
        }
    )
    whole = openapi.from_url(f"{stage.emulator.base_url}/openapi.json", config=config)
    schema = whole.include(operation_id=REVOKE) if revoke else whole.exclude(operation_id=REVOKE)
    findings = Findings()
    for event in from_schema(schema).execute():
        findings.add(event)
    return findings


def new_key(stage: ApiHarness, mode: str) -> str:
    room = {"scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
    key: str = stage.control("POST", "/keys", {"mode": mode, **room})["key"]
    return key


def furnish(stage: ApiHarness) -> None:
    """Something of every kind, so that ids found in answers lead somewhere."""
    stage.server()
    stage.ssh_key()
    stage.domain()
    stage.invoice_id()
    stage.delivery_id()


# Boundary values of every field are asked once; the other dialect and test keys take the same ways in, so random data is enough there.
@pytest.mark.parametrize(
    ("dialect", "mode", "coverage", "examples"),
    [("spec", "live", True, 5), ("live", "live", False, 15), ("spec", "test", False, 5), ("live", "test", False, 5)],
    indirect=["dialect"],
)
def test_the_emulator_keeps_to_its_own_document(stage: ApiHarness, mode: str, coverage: bool, examples: int) -> None:
    furnish(stage)
    key = new_key(stage, mode)
    found = run(stage, key, examples=examples, coverage=coverage)
    assert found.failures == []
    assert set(found.statuses) >= {label for label, operation in LABELS.items() if operation.auth and operation.id != REVOKE}
    # The run said something: the key held to the end, and many operations were seen to succeed.
    succeeded = [label for label, statuses in found.statuses.items() if any(200 <= status < 300 for status in statuses)]
    assert len(succeeded) >= 20, sorted(set(found.statuses) - set(succeeded))
    with stage.client(key) as client:
        assert client.me().livemode is (mode == "live")


def test_revoking_keys_keeps_to_the_document_too(stage: ApiHarness) -> None:
    found = run(stage, new_key(stage, "live"), examples=20, coverage=True, revoke=True)
    assert found.failures == []
    assert set(found.statuses) == {"DELETE /keys/{key_id}"}


def test_the_document_is_the_one_printed_from_the_table(stage: ApiHarness, dialect: str) -> None:
    answer = httpx.get(f"{stage.emulator.base_url}/openapi.json", trust_env=False)
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    served = answer.json()
    validate(served)
    expected = document(server_url=served["servers"][0]["url"], title=served["info"]["title"])
    for operation in OPERATIONS:
        if dialect == "live" and operation.live_expensive:
            expected["paths"][operation.path][operation.method.lower()]["x-expensive"] = True
    assert served == expected
    assert stage.live.openapi() == expected
