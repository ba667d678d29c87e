"""Documents of services that differ from the table of operations in one place each."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from pulumi_hosting.api.openapi import document
from pulumi_hosting.reports.contract import Mismatch, differences

OURS = document()
Change = Callable[[dict[str, Any]], Any]


def changed(change: Change) -> list[Mismatch]:
    theirs = deepcopy(OURS)
    change(theirs)
    return differences(theirs)


def schema(theirs: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = theirs["components"]["schemas"][name]
    return found


def test_the_own_document_does_not_differ() -> None:
    assert differences(deepcopy(OURS)) == []


CHANGES: dict[str, tuple[Change, str, bool]] = {
    "an operation is gone": (
        lambda doc: doc["paths"]["/servers"].pop("post"),
        "missing: create_server",
        True,
    ),
    "a path is gone": (lambda doc: doc["paths"].pop("/me"), "missing: get_me", True),
    "a new operation": (
        lambda doc: doc["paths"].update({"/tickets": {"get": {}}}),
        "added: GET /tickets",
        False,
    ),
    "another scope": (
        lambda doc: doc["paths"]["/me"]["get"].update({"x-scopes": ["account:read"]}),
        "changed: get_me, x-scopes: account:read at the service, none here",
        False,
    ),
    "no idempotency key any more": (
        lambda doc: doc["paths"]["/servers"]["post"].update({"x-idempotent": False}),
        "changed: create_server, x-idempotent: false at the service, true here",
        True,
    ),
    "refused to test keys": (
        lambda doc: doc["paths"]["/servers"]["post"].update({"x-sandbox": "forbidden"}),
        "changed: create_server, x-sandbox: forbidden at the service, fake here",
        False,
    ),
    "a filter is gone": (
        lambda doc: doc["paths"]["/orders"]["get"].update({"parameters": []}),
        "missing: list_orders, query: cursor",
        True,
    ),
    "a new filter": (
        lambda doc: doc["paths"]["/me"]["get"]["parameters"].append({"name": "full", "in": "query"}),
        "added: get_me, query: full",
        False,
    ),
    "a filter that must be given": (
        lambda doc: doc["paths"]["/me"]["get"]["parameters"].append(
            {"name": "full", "in": "query", "required": True}
        ),
        "added: get_me, query: full",
        True,
    ),
    "a filter that we know must be given": (
        lambda doc: next(
            parameter
            for parameter in doc["paths"]["/orders"]["get"]["parameters"]
            if parameter["name"] == "cursor"
        ).update({"required": True}),
        "changed: list_orders, query: cursor: required at the service, optional here",
        True,
    ),
    "a field that we send is gone": (
        lambda doc: schema(doc, "SshKeyCreate")["properties"].pop("name"),
        "missing: create_ssh_key, body: name",
        True,
    ),
    "a new field to send": (
        lambda doc: schema(doc, "SshKeyCreate")["properties"].update({"tags": {"type": "array"}}),
        "added: create_ssh_key, body: tags",
        False,
    ),
    "a new field that must be sent": (
        lambda doc: schema(doc, "SshKeyCreate").update(
            {
                "properties": {**schema(doc, "SshKeyCreate")["properties"], "tags": {"type": "array"}},
                "required": ["name", "public_key", "tags"],
            }
        ),
        "added: create_ssh_key, body: tags",
        True,
    ),
    "a field must be sent": (
        lambda doc: schema(doc, "ServerCreate")["required"].append("name"),
        "changed: create_server, body: name: required at the service, optional here",
        True,
    ),
    "a required field of the answer is gone": (
        lambda doc: schema(doc, "Me")["properties"].pop("scopes"),
        "missing: get_me, answer 200: scopes",
        True,
    ),
    "an optional field of the answer is gone": (
        lambda doc: schema(doc, "Me")["properties"].pop("api_version"),
        "missing: get_me, answer 200: api_version",
        False,
    ),
    "a new field of the answer": (
        lambda doc: schema(doc, "Me")["properties"].update({"region": {"type": "string"}}),
        "added: get_me, answer 200: region",
        False,
    ),
    "another type": (
        lambda doc: schema(doc, "Me")["properties"].update({"account_id": {"type": "string"}}),
        "changed: get_me, answer 200: account_id: string at the service, number here",
        True,
    ),
    "a field in a field": (
        lambda doc: schema(doc, "Me")["properties"].update(
            {"key": {"properties": {"id": {"type": "integer"}}}}
        ),
        "missing: get_me, answer 200: key.name",
        False,
    ),
    "another status": (
        lambda doc: doc["paths"]["/me"]["get"]["responses"].update(
            {"203": doc["paths"]["/me"]["get"]["responses"].pop("200")}
        ),
        "missing: get_me, answer 200",
        False,
    ),
    "a body that was not needed": (
        lambda doc: doc["paths"]["/servers/{server_id}/actions/reset-password"]["post"].update(
            {"requestBody": {"required": True, "content": {}}}
        ),
        "added: reset_server_password, body",
        True,
    ),
}


@pytest.mark.parametrize(("change", "line", "breaks"), CHANGES.values(), ids=CHANGES)
def test_a_difference_is_named(change: Change, line: str, breaks: bool) -> None:
    found = changed(change)
    named = [row for row in found if line in str(row)]
    assert named, [*map(str, found)]
    assert {row.breaks for row in named} == {breaks}


def test_the_same_contract_in_other_words_does_not_differ() -> None:
    """Other names of schemas and parameters, paths with their version, nullable types as 3.0 writes them."""

    def reword(node: Any) -> Any:
        if isinstance(node, list):
            return [*map(reword, node)]
        if not isinstance(node, dict):
            return node
        node = {
            name: reword(value)
            for name, value in node.items()
            if name != "description" or not isinstance(value, str)
        }
        if isinstance(node.get("$ref"), str):
            node["$ref"] = node["$ref"].replace("/schemas/", "/schemas/Their")
        branches = node.get("anyOf")
        if branches and {"type": "null"} in branches and len(branches) == 2:
            (kept,) = (branch for branch in branches if branch != {"type": "null"})
            node = {**{name: value for name, value in node.items() if name != "anyOf"}, **kept}
            if isinstance(kept.get("type"), str):
                node["type"] = [kept["type"], "null"]
        return node

    theirs = reword(deepcopy(OURS))
    schemas = theirs["components"]["schemas"]
    theirs["components"]["schemas"] = {f"Their{name}": value for name, value in schemas.items()}
    theirs["paths"] = {
        f"/v1{path}".replace("{server_id}", "{id}"): item for path, item in theirs["paths"].items()
    }
    assert [*map(str, differences(theirs))] == []


@pytest.mark.parametrize(
    "theirs",
    [
        {},
        {"paths": None},
        {"paths": {"/me": None, "/servers": {"get": 5, "post": {"responses": 7, "parameters": {"a": 1}}}}},
        {"paths": {"/me": {"get": {"responses": {"200": {"content": {"application/json": {"schema": 3}}}}}}}},
    ],
)
def test_a_document_of_another_shape_is_compared_too(theirs: dict[str, Any]) -> None:
    assert "missing: create_topup" in [*map(str, differences(theirs))]


def test_schemas_that_hold_themselves_end() -> None:
    def fold(theirs: dict[str, Any]) -> None:
        schema(theirs, "Me")["properties"]["key"] = {"$ref": "#/components/schemas/Me"}
        theirs["components"]["schemas"]["Account"] = {"$ref": "#/components/schemas/Account"}

    assert "missing: get_me, answer 200: key.id" in [*map(str, changed(fold))]
