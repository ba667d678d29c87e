"""The table and the typed methods are one thing: every row has its method, every method its row, every
keyword its field.
"""

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.results import Document, Done, File, Items, Pages
from pulumi_hosting.client.service_base import Service
from tests.client.support import scripted

pytestmark = pytest.mark.usefixtures("both")

# What the client itself has beside the operations.
OWN = {
    "service_now", "call", "pages", "items", "request", "poller", "monotonic", "sleep", "close", "base_url",
    "read_only",
}  # fmt: skip


def item(operation: Operation) -> type[BaseModel]:
    """The model of a list's items."""
    page = next(model for model in operation.responses.values() if model is not None)
    found: type[BaseModel]
    (found,) = typing.get_args(page.model_fields["data"].annotation)
    return found


# Methods that are made of the methods of operations: a search in each list of named things, and four more.
SHORTCUTS = {
    f"{operation.call}.get_by_name".replace(".list.", ".")
    for operation in OPERATIONS
    if operation.call.endswith(".list")
    and operation.paging != "none"
    and "name" in item(operation).model_fields
} | {"orders.wait", "servers.start", "servers.stop", "servers.restart"}


def methods(thing: Any, prefix: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in inspect.getmembers(thing):
        if name.startswith("_") or (not prefix and name in OWN):
            continue
        if isinstance(value, Service):
            yield from methods(value, f"{prefix}{name}.")
        elif callable(value):
            yield f"{prefix}{name}", value


CLIENT, _ = scripted()
METHODS = {name: method for name, method in methods(CLIENT) if name not in SHORTCUTS}


def test_every_shortcut_is_there() -> None:
    assert set(dict(methods(CLIENT))) - set(METHODS) == SHORTCUTS


def test_every_row_has_its_method_and_every_method_its_row() -> None:
    assert set(METHODS) - {"with_options"} == {operation.call for operation in OPERATIONS}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_keyword_is_a_field_of_the_row_and_every_field_a_keyword(operation: Operation) -> None:
    parameters = inspect.signature(METHODS[operation.call]).parameters
    positional = [
        name for name, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    keywords = {name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY}
    assert tuple(positional) == operation.path_parameters
    fields = {
        name
        for model in (operation.query, operation.request)
        if model is not None
        for name in model.model_fields
    }
    ours = {"idempotency_key"} if operation.is_keyed else {"max_items"} if "cursor" in fields else set()
    assert keywords == fields | ours


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_a_keyword_must_be_given_exactly_if_its_field_must(operation: Operation) -> None:
    parameters = inspect.signature(METHODS[operation.call]).parameters
    for model in (operation.query, operation.request):
        for name, field in model.model_fields.items() if model else ():
            # The one field that clears by being left out; leaving it out by accident must not.
            required = field.is_required() or (operation.id, name) == ("set_server_ip_ptr", "domain")
            assert (parameters[name].default is inspect.Parameter.empty) == required, name


def expected_result(operation: Operation) -> Any:
    found = list(dict.fromkeys(model for model in operation.responses.values() if model is not None))
    if operation.paging != "none":
        return (Pages if operation.paging == "cursor" else Items)[item(operation)]
    special = {bytes: File, dict: Document}
    results = [special.get(model, model) for model in found] or [Done]
    return typing.Union[tuple(results)]  # noqa: UP007  # built from a list


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_result_is_typed_as_the_row_says(operation: Operation) -> None:
    assert typing.get_type_hints(METHODS[operation.call])["return"] == expected_result(operation)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_method_says_what_it_does(operation: Operation) -> None:
    text = inspect.getdoc(METHODS[operation.call]) or ""
    assert len(text) > 20
    if operation.scopes and operation.tag != "webhooks":
        assert all(f"``{scope}``" in text for scope in operation.scopes)
    assert ("Expensive" in text or "expensive" in text) == bool(
        operation.expensive or operation.expensive_when or operation.live_expensive
    )
    if operation.is_keyed:
        assert "idempotency_key" in text


def test_the_two_answers_of_an_order_are_two_types() -> None:
    assert BY_ID["create_server"].responses == {201: m.ServerCreated, 202: m.Order}


def test_every_response_model_is_a_model_or_one_of_the_three_exceptions() -> None:
    for operation in OPERATIONS:
        for model in operation.responses.values():
            assert model in (None, bytes, dict) or issubclass(model, BaseModel)


def test_services_have_a_name_and_no_secret() -> None:
    assert repr(CLIENT.servers.ips) == f"<IpsService of {CLIENT!r}>"
    assert isinstance(CLIENT, Client)
