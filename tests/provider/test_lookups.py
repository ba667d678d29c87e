"""Every read of the API as a lookup, asked over real HTTP in both dialects, and fitting the schema it is
described by.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pulumi_hosting.api.casing import camel
from pulumi_hosting.api.operations import BY_ID, OPERATIONS
from pulumi_hosting.client.exceptions import InvalidInput, NotFound, ValidationFailed
from pulumi_hosting.provider import lookup_tokens
from pulumi_hosting.provider.names import token
from pulumi_hosting.provider.plugin.package_schema import package_spec
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.contract.harness import ApiHarness

Args = Mapping[str, Any]

# Whose ids a path needs. Lookups without needed arguments are asked without any.
NEEDED: dict[str, Callable[[ApiHarness], Args]] = {
    "getInvoicePdf": lambda s: {"invoiceId": s.invoice_id()},
    "getTariff": lambda s: {"tariffId": float(s.tariff().id)},
    "getQuote": lambda s: {"tariffId": float(s.tariff().id), "months": 12.0, "promoCode": "SAVE20"},
    "getServer": lambda s: {"serverId": float(s.server().id), "include": "live"},
    "getOrder": lambda s: {"invoiceId": str(s.order().invoice_id)},
    "getDomainAvailability": lambda s: {"name": "free-name.com"},
    "getWebhookDeliveries": lambda s: {
        "webhookId": str(s.live.webhooks.deliveries.get(s.delivery_id()).subscription_id)
    },
}

# What must be on the account for a list not to be empty.
FILLED: dict[str, Callable[[ApiHarness], object]] = {
    "getTransactions": ApiHarness.server,
    "getInvoices": ApiHarness.invoice_id,
    "getServers": ApiHarness.server,
    "getOrders": ApiHarness.order,
    "getSshKeys": ApiHarness.ssh_key,
    "getDomains": ApiHarness.domain,
    "getWebhooks": ApiHarness.webhook,
}

SPEC = package_spec("1.2.3")


def prepared(api: ApiHarness, name: str) -> Args:
    """The arguments of a lookup, once there is something to find."""
    if name in FILLED:
        FILLED[name](api)
        return {}
    if name in NEEDED:
        return NEEDED[name](api)
    operation = LOOKUPS[name].operation
    ids = api.arguments(operation).ids
    return {camel(parameter): str(id) for parameter, id in zip(operation.path_parameters, ids, strict=True)}


def complaints(value: Any, spec: Mapping[str, Any], where: str) -> list[str]:
    """Where a value is not what its Pulumi type says."""
    if "$ref" in spec:
        if spec["$ref"] == "pulumi.json#/Any":
            return []
        return object_complaints(value, SPEC["types"][spec["$ref"].removeprefix("#/types/")], where)
    if spec["type"] == "array":
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        return [
            line
            for index, item in enumerate(value)
            for line in complaints(item, spec["items"], f"{where}[{index}]")
        ]
    if spec["type"] == "object":
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no map"]
        return [
            line
            for key, item in value.items()
            for line in complaints(item, spec["additionalProperties"], f"{where}.{key}")
        ]
    kinds = {"string": str, "boolean": bool, "integer": int, "number": int | float}
    fits = isinstance(value, kinds[spec["type"]]) and (
        spec["type"] == "boolean" or not isinstance(value, bool)
    )
    return [] if fits else [f"{where}: {value!r} is no {spec['type']}"]


def object_complaints(value: Any, spec: Mapping[str, Any], where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    found = [f"{where}.{name}: is needed" for name in spec.get("required", ()) if name not in value]
    found += [f"{where}.{name}: is not in the schema" for name in value.keys() - spec["properties"].keys()]
    described = ((name, item) for name, item in value.items() if name in spec["properties"])
    return found + [
        line
        for name, item in described
        for line in complaints(item, spec["properties"][name], f"{where}.{name}")
    ]


def test_every_read_is_a_lookup_and_no_write_is() -> None:
    assert {lookup.operation.id for lookup in LOOKUPS.values()} == {
        row.id for row in OPERATIONS if row.method == "GET"
    }
    assert [token(name) for name in LOOKUPS] == list(SPEC["functions"])


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("get_balance", "getBalance"),
        ("list_servers", "getServers"),
        ("check_domain_availability", "getDomainAvailability"),
        ("list_server_ips", "getServerIps"),
        ("get_server_status", "getServerStatus"),
        ("list_webhook_deliveries", "getWebhookDeliveries"),
        ("get_webhook_delivery", "getWebhookDelivery"),
    ],
)
def test_names_follow_from_the_operation(operation: str, name: str) -> None:
    assert LOOKUPS[name].operation is BY_ID[operation]


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_asks_its_operation_and_answers_as_the_schema_says(api: ApiHarness, name: str) -> None:
    args = prepared(api, name)
    before = len(api.requests())
    found = lookup_tokens.call(api.live, name, args)
    operation = LOOKUPS[name].operation
    asked = api.requests()[before:]
    path = re.compile(re.sub(r"{\w+}", r"[0-9]+", operation.path))
    assert asked
    assert all(row["method"] == "GET" and path.fullmatch(row["path"]) for row in asked), asked
    assert object_complaints(found, SPEC["functions"][token(name)]["outputs"], name) == []
    if operation.paging != "none":
        (items,) = found.values()
        assert items, "an empty list shows nothing"


def test_a_list_is_walked_whole(api: ApiHarness) -> None:
    api.control("PATCH", "/account", {"balance": "100000.00"})
    tariff = api.tariff()
    for number in range(101):
        api.live.servers.create(tariff_id=tariff.id, os="debian-12", name=f"web-{number}", months=1)
    before = len(api.requests())
    found = lookup_tokens.call(api.live, "getServers", {"status": "active"})
    assert len(found["servers"]) == 101
    assert len(api.requests()) - before == 2


def test_a_whole_token_is_a_name_too(api: ApiHarness) -> None:
    assert lookup_tokens.call(api.live, "hosting:index:getMe", {})["livemode"] is True


WRONG: list[tuple[str, Args, str, str]] = [
    ("getServers", {"state": "active"}, "state", "is no argument of getServers; there are status, ip"),
    ("getServers", {"cursor": "x"}, "cursor", "is no argument of getServers"),
    ("getServers", {"limit": 5}, "limit", "is no argument of getServers"),
    ("getBalance", {"serverId": "1"}, "serverId", "is no argument of getBalance; there are none"),
    ("getServer", {}, "serverId", "is needed"),
    ("getServer", {"serverId": "web"}, "serverId", "must be a whole number"),
    ("getServer", {"serverId": "../balance"}, "serverId", "must be a whole number"),
    ("getServer", {"serverId": "1", "include": "not live"}, "include", "live"),
    ("getTariff", {"tariffId": 1.5}, "tariffId", "must be a whole number"),
    ("getQuote", {"tariffId": 1, "months": 2}, "months", "1, 3, 6 or 12"),
    ("getQuote", {"months": 3}, "tariffId", "is needed"),
    ("getOsImages", {"tariffId": "x"}, "tariffId", "must be a whole number, and is a text"),
    ("getTransactions", {"since": "yesterday"}, "since", "RFC 3339"),
    ("getNothing", {}, "name", "no lookup"),
]


@pytest.mark.parametrize(("name", "args", "field", "reason"), WRONG)
@pytest.mark.parametrize("dialect", ["spec"])
def test_what_is_wrong_is_refused_by_name_and_nothing_is_sent(
    api: ApiHarness, name: str, args: Args, field: str, reason: str
) -> None:
    before = len(api.requests())
    with pytest.raises(InvalidInput) as refused:
        lookup_tokens.call(api.live, name, args)
    assert list(refused.value.fields) == [field]
    assert reason in refused.value.fields[field]
    assert "\n" not in str(refused.value)
    assert len(api.requests()) == before


def test_a_refused_value_is_not_repeated(api: ApiHarness) -> None:
    with pytest.raises(InvalidInput) as refused:
        lookup_tokens.call(api.live, "getServers", {"status": "cAnary 41"})
    assert "cAnary" not in f"{refused.value} {refused.value.__cause__} {refused.value.__context__}"


def test_a_word_that_this_version_does_not_know_is_decided_by_the_service(api: ApiHarness) -> None:
    with pytest.raises(ValidationFailed) as refused:
        lookup_tokens.call(api.live, "getServers", {"status": "melted"})
    assert "status" in refused.value.fields
    assert "given melted; this version knows active, stopped" in str(refused.value)


def test_what_the_service_refuses_is_one_line_with_code_and_request(api: ApiHarness) -> None:
    with pytest.raises(NotFound) as refused:
        lookup_tokens.call(api.live, "getServer", {"serverId": "4242"})
    assert "\n" not in str(refused.value)
    assert refused.value.request_id is not None
    assert refused.value.request_id in str(refused.value)
