"""Whatever is given and whatever is answered: only errors of this package leave the client."""

import json
from contextlib import suppress
from functools import cache

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.client.exceptions import HostingError
from tests.client.support import answer, scripted
from tests.client.test_retries import FIELDS, QUERIES, call

pytestmark = pytest.mark.usefixtures("both")

NUMBERS = st.sampled_from([True, False, 0, 1, -1, 1.0, 1e27, 10**27, 10**400, float("nan"), 2**63])
TEXTS = st.sampled_from(
    [
        "",
        "\ud800",
        "a\x00",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+23:59",
        "1e5",
        "NaN",
        "-1.00",
        "9" * 60 + ".00",
    ]
)
LEAVES = st.one_of(st.none(), NUMBERS, TEXTS, st.text(max_size=12))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
FEW = settings(
    max_examples=settings().max_examples // 7, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize(
    "operation", [row for row in OPERATIONS if row.request or row.query], ids=lambda row: row.id
)
@given(data=st.data())
@FEW
def test_arguments(operation: Operation, data: st.DataObject) -> None:
    client, _ = scripted(answer(400, {}))
    names = [
        name
        for model in (operation.request, operation.query)
        if model is not None
        for name in model.model_fields
    ]
    given_fields = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
    body = {**FIELDS.get(operation.id, {}), **given_fields}
    query = {**QUERIES.get(operation.id, {}), **given_fields}
    with suppress(HostingError):
        client.call(
            operation.id,
            *[1] * len(operation.path_parameters),
            body=body if operation.request is not None else None,
            query=query if operation.query is not None else None,
        )


@cache
def known_names(id: str) -> list[str]:
    """Field names of an operation's answers, at every depth."""
    found: set[str] = {"data", "error"}
    for model in BY_ID[id].responses.values():
        if isinstance(model, type) and hasattr(model, "model_json_schema"):
            schema = model.model_json_schema()
            for part in [schema, *schema.get("$defs", {}).values()]:
                found |= set(part.get("properties", ()))
    return sorted(found)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda row: row.id)
@given(data=st.data())
@FEW
def test_answers(operation: Operation, data: st.DataObject) -> None:
    inner = st.dictionaries(st.sampled_from(known_names(operation.id)), VALUES, max_size=5)
    nested = st.dictionaries(
        st.sampled_from(known_names(operation.id)),
        st.one_of(VALUES, inner, st.lists(inner, max_size=3)),
        max_size=6,
    )
    content = json.dumps(data.draw(nested)).encode("utf-8", "surrogatepass")
    status = data.draw(st.sampled_from([200, 201, 202, 204, 302, 402, 503]))
    client, _ = scripted(
        httpx.Response(
            status, content=content, headers={"Location": data.draw(st.sampled_from(["", "//[", "x"]))}
        )
    )
    with suppress(HostingError):
        found = call(client, operation)
        repr(found)
