"""What a test key must be refused, and with which error."""

import json
from typing import Any
from uuid import UUID

from pulumi_hosting.certify.operations import KEYED
from pulumi_hosting.certify.reads import ABSENT
from pulumi_hosting.certify.sandbox import PUBLIC_KEY, choose, need_test_key, too_expensive, topup_body
from pulumi_hosting.certify.session import TEST, Exchanges


def refusals(run: Exchanges) -> None:
    """Bodies, content types, sizes and Idempotency-Keys that are refused, with a test key."""
    need_test_key(run)
    content, form = b'{"a": 1}', {"Content-Type": "text/plain"}
    check, code = "http.content-type", "unsupported_media_type"
    for path in ("/servers", "/ssh-keys", "/balance/topup"):
        step = f"text {path}"
        run.refused(check, 415, f"POST {path}", code=code, step=step, content=content, headers=form)
    large = json.dumps({"name": "a" * 66_000, "public_key": PUBLIC_KEY}).encode()
    form = {"Content-Type": "application/json"}
    call, code = "POST /ssh-keys", "payload_too_large"
    run.refused("http.size", 413, call, code=code, content=large, headers=form)
    answer = run.call("POST", "/ssh-keys", TEST, content=large[:63_000], headers=form)
    run.expect("http.size", answer.status != 413, "63 KB are refused", answer)
    run.refused("errors.bad-json", 400, call, content=b"{not json", headers=form)
    code = "idempotency_key_required"
    for call in KEYED:
        body: object = {} if call.startswith("POST") else None
        run.refused("idempotency.required", 400, call.replace("/1", f"/{ABSENT}"), code=code, json_body=body)
    run.part("idempotency.length", _key_lengths, run)
    run.part("errors.fields", _fields, run)
    run.part("servers.order-refusals servers.no-capacity", _orders, run)
    run.part("servers.insufficient-funds", too_expensive, run)
    run.part("idempotency.refusal", _stored_refusals, run)


def _key_lengths(run: Exchanges) -> None:
    """Of an Idempotency-Key, for a top-up that is allowed."""
    body = topup_body(run)
    for length, allowed in ((15, False), (16, True), (128, True), (129, False)):
        key = f"{run.step(f'length {length}')}{'a' * 128}"[:length]
        answer = run.call("POST", "/balance/topup", TEST, json_body=body, headers={"Idempotency-Key": key})
        run.status("idempotency.length", answer, 201 if allowed else 400)
    key = str(UUID(run.step("a UUID")))
    answer = run.call("POST", "/balance/topup", TEST, json_body=body, headers={"Idempotency-Key": key})
    run.status("idempotency.length", answer, 201)


def _fields(run: Exchanges) -> None:
    body = {"public_key": PUBLIC_KEY}
    answer = run.refused("errors.fields", 400, "POST /ssh-keys", code="validation_error", json_body=body)
    fields = answer.details.get("fields")
    run.expect("errors.fields", fields, "details.fields is missing", answer)


def _orders(run: Exchanges) -> None:
    tariff, image = choose(run)
    good = {"tariff_id": tariff["id"], "os": image, "name": f"certify-{run.id}", "months": 1}
    refused: list[tuple[str, dict[str, Any], str | None]] = [
        ("os", {"os": "certify"}, "os_not_allowed"),
        ("no image", {"os": None}, None),
        ("months", {"months": 2}, "invalid_period"),
        ("both", {"hours": 1}, None),
        ("tariff", {"tariff_id": "certify"}, "validation_error"),
        ("keys", {"ssh_key_ids": "certify"}, None),
    ]
    tariffs = run.get("/catalog/tariffs").items
    for entry in tariffs:
        if entry.get("excluded_os"):
            other = {"tariff_id": entry["id"], "os": entry["excluded_os"][0]}
            refused.append((f"excluded {entry['id']}", other, "os_not_allowed"))
            break
    hourly = [entry for entry in tariffs if entry.get("hourly_available") and entry.get("in_stock")][:1]
    for entry in hourly:
        base = {"tariff_id": entry["id"], "months": None, "billing_cycle": "hourly"}
        refused += [(f"{hours} hours", {**base, "hours": hours}, None) for hours in (0, 721)]
        order = {**good, **base, "hours": 1}  # some deployments sell the first hour alone
        answer = run.call("POST", "/servers", TEST, json_body=_given(order), step="sandbox hours")
        if not answer.is_(402) and run.status("servers.order", answer, 201):
            id = answer.body.get("server", {}).get("id")
            run.made(f"sandbox server {id}", "DELETE", f"/servers/{id}", TEST)
            if run.call("DELETE", f"/servers/{id}", TEST, step="sandbox hours deletion").ok:
                run.removed(f"/servers/{id}")
    for name, change, code in refused:
        order, step = _given({**good, **change}), f"bad order {name}"
        run.refused("servers.order-refusals", 400, "POST /servers", code=code, json_body=order, step=step)
    for entry in run.sold_out[:1]:
        body = {**good, "tariff_id": entry["id"]}
        answer = run.call("POST", "/servers", TEST, json_body=body, step="no stock")
        run.expect(
            "servers.no-capacity",
            answer.code in ("no_capacity", "tariff_unavailable"),
            f"answered {answer.short}, not 409 no_capacity",
            answer,
        )


def _given(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


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
