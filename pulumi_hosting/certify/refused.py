"""What a test key must be refused, and with which error."""

import json
from typing import Any

from pulumi_hosting.certify.operations import KEYED
from pulumi_hosting.certify.reads import ABSENT
from pulumi_hosting.certify.sandbox import choose, need_test_key, too_expensive
from pulumi_hosting.certify.session import TEST, Exchanges

SANDBOX_IDS = 9_000_000_000
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsfB1y0fXZ0m0oH0w5nq3t3v9f2dN8mQK4h1XW0qEpR"


def refusals(run: Exchanges) -> None:
    """Bodies, content types, sizes and Idempotency-Keys that are refused, with a test key."""
    need_test_key(run)
    form = {"Content-Type": "text/plain"}
    for path in ("/servers", "/ssh-keys", "/balance/topup"):
        answer = run.call("POST", path, TEST, content=b'{"a": 1}', headers=form, step=f"text {path}")
        run.status("http.content-type", answer, 415, code="unsupported_media_type")
    large = json.dumps({"name": "a" * 66_000, "public_key": PUBLIC_KEY}).encode()
    form = {"Content-Type": "application/json"}
    answer = run.call("POST", "/ssh-keys", TEST, content=large, headers=form)
    run.status("http.size", answer, 413, code="payload_too_large")
    answer = run.call("POST", "/ssh-keys", TEST, content=b"{not json", headers=form)
    run.status("errors.bad-json", answer, 400)
    for call in KEYED:
        method, _, path = call.partition(" ")
        path = path.replace("/1", f"/{ABSENT}")
        body: object = {} if method == "POST" else None
        answer = run.call(method, path, TEST, json_body=body)
        run.status("idempotency.required", answer, 400, code="idempotency_key_required")
    for key in ("a" * 15, "a" * 129):
        answer = run.call("POST", "/servers", TEST, json_body={}, headers={"Idempotency-Key": key})
        run.status("idempotency.length", answer, 400)
    _fields(run)
    _orders(run)
    too_expensive(run)
    _stored_refusals(run)


def _fields(run: Exchanges) -> None:
    body = {"public_key": PUBLIC_KEY}
    answer = run.call("POST", "/ssh-keys", TEST, json_body=body)
    run.status("errors.fields", answer, 400, code="validation_error")
    fields = answer.error.get("details", {}).get("fields")
    run.expect("errors.fields", fields, "details.fields is missing", answer)


def _orders(run: Exchanges) -> None:
    tariff, image = choose(run)
    good = {"tariff_id": tariff["id"], "os": image, "name": f"certify-{run.id}", "months": 1}
    refused: list[tuple[str, dict[str, Any], str | None]] = [
        ("os", {"os": "certify"}, "os_not_allowed"),
        ("months", {"months": 2}, None),
        ("both", {"hours": 1}, None),
        ("tariff", {"tariff_id": "certify"}, "validation_error"),
    ]
    tariffs = run.get("/catalog/tariffs").items
    for entry in tariffs:
        if entry.get("excluded_os"):
            other = {"tariff_id": entry["id"], "os": entry["excluded_os"][0]}
            refused.append((f"excluded {entry['id']}", other, "os_not_allowed"))
            break
    for name, change, code in refused:
        answer = run.call("POST", "/servers", TEST, json_body={**good, **change}, step=f"bad order {name}")
        run.status("servers.order-refusals", answer, 400, code=code)
    for entry in tariffs:
        if entry.get("in_stock") is False:
            body = {**good, "tariff_id": entry["id"]}
            answer = run.call("POST", "/servers", TEST, json_body=body, step="no stock")
            run.expect(
                "servers.no-capacity",
                answer.is_(409, "no_capacity") or answer.is_(409, "tariff_unavailable"),
                f"answered {answer.short}, not 409 no_capacity",
                answer,
            )
            break
    keys = {"ssh_key_ids": "certify"}
    answer = run.call("POST", "/servers", TEST, json_body={**good, **keys}, step="bad order keys")
    run.status("servers.order-refusals", answer, 400)


def _stored_refusals(run: Exchanges) -> None:
    """Whether a refusal is stored under its key; the document allows either reading."""
    first = run.call("POST", "/balance/topup", TEST, json_body={"amount": "0.01"}, step="refusal")
    again = run.call(
        "POST", "/balance/topup", TEST, json_body={"amount": "0.01"}, step="refusal", stored=True
    )
    run.same("idempotency.refusal", "a repeated refusal", again.short, first.short, again)
    other = run.call("POST", "/balance/topup", TEST, json_body={"amount": "0.02"}, step="refusal")
    stored = other.is_(409, "idempotency_conflict")
    run.reading("refusals_stored", stored)
    if stored:
        same = again.error.get("request_id") == again.headers.get("x-request-id")
        run.reading("replay_request_id", "fresh" if same else "stored")
