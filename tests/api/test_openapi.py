"""The OpenAPI document says what the table says, and is one."""

import json
import re
from typing import Any

import pytest

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.api.models import EVENTS, DeleteResult
from pulumi_hosting.api.models.webhooks import DELIVERY_HEADERS
from pulumi_hosting.api.openapi import RETRY_AFTER_STATUSES, document, schema_name
from pulumi_hosting.api.operations import KEY_LENGTH, OPERATIONS, Operation

DOCUMENT = document()
ROWS = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)


def printed(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][operation.path][operation.method.lower()]
    return found


def test_it_says_what_it_is() -> None:
    """tests/contract validates it in each dialect."""
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"]["version"] == "1.0.0"
    assert (DOCUMENT["info"]["title"], DOCUMENT["servers"]) == ("Hosting Client API", [{"url": "/v1"}])
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"
    assert {tag["name"] for tag in DOCUMENT["tags"]} == {operation.tag for operation in OPERATIONS} | {
        "events"
    }
    assert all(tag["description"] for tag in DOCUMENT["tags"])
    json.dumps(DOCUMENT)


def test_it_is_made_again_each_time_and_always_the_same() -> None:
    first = document()
    as_it_was = json.dumps(first)
    first["paths"].clear()
    first["components"]["schemas"]["Error"]["properties"].clear()
    assert json.dumps(document()) == as_it_was


def test_it_has_every_row_and_nothing_else() -> None:
    found = {
        (method, path): row["operationId"]
        for path, item in DOCUMENT["paths"].items()
        for method, row in item.items()
    }
    assert found == {(operation.method.lower(), operation.path): operation.id for operation in OPERATIONS}


def test_deliveries_have_a_tag_of_their_own() -> None:
    """openapi-generator writes a class for the operations of a tag, and then one for its webhooks over it."""
    of_paths = {tag for item in DOCUMENT["paths"].values() for row in item.values() for tag in row["tags"]}
    of_deliveries = {tag for item in DOCUMENT["webhooks"].values() for tag in item["post"]["tags"]}
    assert not of_paths & of_deliveries
    assert {tag["name"] for tag in DOCUMENT["tags"]} == of_paths | of_deliveries


def test_no_field_is_always_null() -> None:
    """openapi-generator gives such a field a Java class that it does not write."""
    assert not re.search(r'"\w+": {"type": "null"}', json.dumps(DOCUMENT["components"]))


@ROWS
def test_what_a_row_says_of_itself(operation: Operation) -> None:
    row = printed(operation)
    assert row["summary"] == operation.summary
    assert row["tags"] == [operation.tag]
    assert row["security"] == ([{"bearer": []}] if operation.auth else [])
    assert row["x-scopes"] == list(operation.scopes)
    assert row["x-idempotent"] is operation.is_keyed
    assert row["x-expensive"] is operation.expensive
    assert row["x-sandbox"] == operation.sandbox
    assert row.get("x-expensive-when") == ({"include": ["live"]} if operation.id == "get_server" else None)


@ROWS
def test_the_parameters_of_a_row(operation: Operation) -> None:
    parameters = [
        DOCUMENT["components"]["parameters"][item["$ref"].rsplit("/", 1)[1]] if "$ref" in item else item
        for item in printed(operation)["parameters"]
    ]
    by_place: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
    for item in parameters:
        by_place[item["in"]][item["name"]] = item
        assert "null" not in json.dumps(item["schema"])
    assert tuple(by_place["path"]) == operation.path_parameters
    assert all(item["required"] and item["schema"]["minimum"] == 1 for item in by_place["path"].values())
    fields = operation.query.model_fields if operation.query else {}
    assert set(by_place["query"]) == set(fields)
    assert all(by_place["query"][name]["required"] == field.is_required() for name, field in fields.items())
    assert ("Idempotency-Key" in by_place["header"]) == operation.is_keyed
    assert "X-Request-ID" in by_place["header"]
    if operation.is_keyed:
        key = by_place["header"]["Idempotency-Key"]
        assert key["required"]
        assert (key["schema"]["minLength"], key["schema"]["maxLength"]) == (KEY_LENGTH[0], KEY_LENGTH[-1])


@ROWS
def test_the_body_of_a_row(operation: Operation) -> None:
    body: Any = printed(operation).get("requestBody")
    assert (body is None) == (operation.request is None)
    if operation.request is not None:
        assert body["required"] is not operation.body_optional
        schema = DOCUMENT["components"]["schemas"][operation.request.__name__]
        assert body["content"] == {
            "application/json": {"schema": {"$ref": f"#/components/schemas/{operation.request.__name__}"}}
        }
        assert schema["additionalProperties"] is False
        operation.request.model_validate(*schema["examples"])
        for name, field in schema["properties"].items():
            assert ("null" in json.dumps(field)) == operation.request.may_be_null(name)
        assert set(schema["properties"]) == set(operation.request.model_fields)


@ROWS
def test_the_answers_of_a_row(operation: Operation) -> None:
    responses = printed(operation)["responses"]
    codes = (*operation.error_codes, "method_not_allowed")
    refusals = {CODES[code].status for code in codes}
    assert {int(status) for status in responses} == set(operation.responses) | refusals
    for status, model in operation.responses.items():
        content = responses[str(status)].get("content")
        if model is None:
            assert content is None
        elif model is bytes:
            assert content == {"application/pdf": {"schema": {"type": "string", "format": "binary"}}}
        elif model is dict:
            assert content["application/json"]["schema"] == {"type": "object"}
        else:
            assert content["application/json"]["schema"] == {
                "$ref": f"#/components/schemas/{schema_name(model)}"
            }
    for status in refusals:
        answer = responses[str(status)]
        assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
        assert answer["x-codes"] == [code for code in codes if CODES[code].status == status]
        assert ("Retry-After" in answer["headers"]) == (status in RETRY_AFTER_STATUSES)
    for answer in responses.values():
        assert "X-Request-ID" in answer["headers"]
        assert ("X-RateLimit-Remaining" in answer["headers"]) == operation.auth


def test_every_event_is_a_webhook_with_the_headers_of_a_delivery() -> None:
    assert set(DOCUMENT["webhooks"]) == set(EVENTS)
    for name, item in DOCUMENT["webhooks"].items():
        assert {header["name"] for header in item["post"]["parameters"]} == set(DELIVERY_HEADERS)
        envelope, told = item["post"]["requestBody"]["content"]["application/json"]["schema"]["allOf"]
        assert envelope == {"$ref": "#/components/schemas/Event"}
        assert told["properties"]["type"] == {"const": name}
        assert ("$ref" in told["properties"]["data"]["properties"]["object"]) == (name != "ping")


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    text = json.dumps(DOCUMENT)
    used = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert used == set(DOCUMENT["components"]["schemas"])
    assert "$defs" not in text


def test_both_shapes_of_a_refund_are_described() -> None:
    refund = DOCUMENT["components"]["schemas"][schema_name(DeleteResult)]["properties"]["refund"]
    assert [branch["type"] for branch in refund["anyOf"]] == ["object", "string", "null"]


def test_secrets_are_described_as_such() -> None:
    assert (
        DOCUMENT["components"]["schemas"]["ResetPasswordResult"]["properties"]["password"]["format"]
        == "password"
    )
