"""What schemathesis sends the emulator by its own OpenAPI document, and what the answers departed from.

``python -m tests.contract.schema_cases`` is the proof: every phase, in both dialects.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any

from schemathesis import Config, hook, hooks, openapi
from schemathesis.engine import events, from_schema

from pulumi_hosting.api.operations import OPERATIONS, WINDOW_SECONDS
from pulumi_hosting.emulator import running
from tests.contract.harness import HOOKS, ApiHarness, Receiver

REVOKE = "revoke_api_key"
LABELS = {f"{operation.method} {operation.path}": operation for operation in OPERATIONS}
ALL_PHASES = ("examples", "coverage", "fuzzing", "stateful")
REFUSED = {
    ".* insufficient_funds": "402 with no side effects",
    "list_.* invalid_cursor": "A malformed or tampered cursor gives `400 invalid_cursor`.",
    "create_topup amount": "**TopupInfo**: `currency`, `min`, `max`",
    "(create_topup|create_invoice_payment_link) gateway": "`gateways` (flat array of gateway code strings)",
    "(create_server|list_os_images|get_quote) tariff_id": "Catalog: VDS tariffs",
    "(create_server|reinstall_server) os_not_allowed": "`400 os_not_allowed`",
    r"(create_server|reinstall_server) ssh_key_ids(\.\d+)?": "optional `ssh_key_ids` (array of ids)",
    "get_quote (months|hours|billing_cycle)": "Give either `months` or `hours`",
    "(create_server|renew_server) (months|hours)": "`invalid_period` / `validation_error`",
    "(create_server|get_quote|register_domain) promo_code": "uses the same price functions as order",
    "create_server custom_fields.*": "A body larger than 64 KB gives `413 payload_too_large`.",
    "create_ssh_key public_key": "account-level public keys injected on order and reinstall",
    "(register|transfer)_domain name": "GET /catalog/zones",
    "(renew_domain|set_server_ip_ptr) upstream_rejected": "`invalid_action`, `upstream_rejected`",
    "(register|renew)_domain years": "`min_years`, `max_years`",
    "(create|update)_webhook events": "current event list",
    "(create|update)_webhook url": "url (https, public address, redirects not followed)",
    "set_server_ip_ptr domain": "at least two labels of letters, digits, dots, hyphens",
}
"""By operation and code or field: why a request that the schema allows is refused, in the document's words.
An IPv6 address has no reverse DNS. A number such as 3.0 is an integer of JSON Schema, too, and refused: it is
written 3."""


class Findings:
    """The failures of a run, and the statuses of each operation."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.statuses: dict[str, Counter[int]] = {}
        self.refused: Counter[str] = Counter()

    def add(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.NonFatalError | events.FatalError):
            self.failures.append(str(event))
        if not isinstance(event, events.ScenarioFinished):
            return
        for case_id, checks in event.recorder.checks.items():
            answer = event.recorder.interactions[case_id].response
            label = event.recorder.cases[case_id].value.operation.label
            for check in checks:
                if check.failure_info is None:
                    continue
                failure = check.failure_info.failure
                if check.name == "positive_data_acceptance" and answer is not None:
                    reasons = _reasons(LABELS[label].id, answer.json()["error"])
                    self.refused.update(reasons)
                    if all(any(re.fullmatch(listed, reason) for listed in REFUSED) for reason in reasons):
                        continue
                self.failures.append(
                    f"{event.label}: {failure.title}: {failure.message}\n{check.failure_info.code_sample}"
                )
            if answer is not None:
                self.statuses.setdefault(label, Counter())[answer.status_code] += 1


def _reasons(operation: str, error: dict[str, Any]) -> list[str]:
    """The operation with each field that the error names, or with its code."""
    fields = error.get("details", {}).get("fields") if error["code"] != "os_not_allowed" else None
    return [f"{operation} {name}" for name in fields or [error["code"]]]


def run(
    api_over_http: ApiHarness,
    key: str,
    *,
    examples: int,
    phases: Sequence[str] = ("examples", "fuzzing"),
    revoke: bool = False,
) -> Findings:
    """Send requests of these phases, ``examples`` random ones to each operation."""
    config = Config.from_dict(
        {
            "headers": {"Authorization": f"Bearer {key}"},
            "seed": 1,
            "generation": {
                "max-examples": examples,
                "deterministic": True,
                "with-security-parameters": False,
            },
            "phases": {
                "coverage": {"enabled": "coverage" in phases, "unexpected-methods": ["TRACE"]},
                **{phase: {"enabled": phase in phases} for phase in ALL_PHASES if phase != "coverage"},
            },
        }
    )
    whole = openapi.from_url(f"{api_over_http.base_url}/openapi.json", config=config)
    schema = whole.include(operation_id=REVOKE) if revoke else whole.exclude(operation_id=REVOKE)
    calls = count()

    def before_call(context: object, case: object, kwargs: object) -> None:
        # A check sends invalid keys, of which the service takes 30 per minute.
        if next(calls) % 8 == 0:
            api_over_http.advance(WINDOW_SECONDS)

    findings = Findings()
    hook(before_call)
    try:
        for event in from_schema(schema).execute():
            findings.add(event)
    finally:
        hooks.unregister(before_call)
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


def main(arguments: Sequence[str]) -> int:
    """Every phase in both dialects. Exit 1 if an answer departs from the document."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract.schema_cases")
    parser.add_argument("--examples", type=int, default=60, help="random requests to each operation")
    parser.add_argument("--phases", nargs="*", default=ALL_PHASES)
    given = parser.parse_args(arguments)
    departures = 0
    with Receiver() as receiver:
        for dialect in ("spec", "live"):
            route = {HOOKS: receiver.url}
            with (
                running(dialect=dialect, clock="manual", webhook_route=route) as emulator,
                ApiHarness(emulator, dialect, receiver) as api,
            ):
                create_objects(api)
                found = run(api, new_key(api, "live"), examples=given.examples, phases=given.phases)
            print(*found.failures, sep="\n\n")
            sent = sum(count.total() for count in found.statuses.values())
            print(
                f"{dialect}: {sent} requests to {len(found.statuses)} operations, "
                f"{len(found.failures)} departures, refused: {dict(found.refused)}"
            )
            departures += len(found.failures)
    return 1 if departures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
