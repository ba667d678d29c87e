"""Calls of operations that the table does not have, since they are newer than this version. Pure functions.

A row is made for the call: retried like the others of its method, and redacted like all. If the table does
have the operation, its own row decides about retries, cost and keys.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from urllib.parse import unquote

from pydantic_core import PydanticSerializationError, to_json

from pulumi_hosting.api.operations import MAX_BODY_BYTES, METHODS, OPERATIONS, Operation
from pulumi_hosting.api.secrets import Redactor, Secret, is_secret_name
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.requests import HttpRequest, headers_of
from pulumi_hosting.client.results import RawResponse

_PATH = re.compile(r"(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)+")


def row(method: str, path: str, *, expensive: bool, keyed: bool) -> Operation:
    """The row by which the call is made. Raises ``InvalidInput``."""
    if method not in METHODS:
        raise InvalidInput({"method": f"must be one of {', '.join(METHODS)}"}, "the request")
    parts = [unquote(part) for part in path.split("/")] if isinstance(path, str) else []
    climbs = any(part in (".", "..") or "/" in part for part in parts)
    if not isinstance(path, str) or not _PATH.fullmatch(path) or climbs:
        raise InvalidInput(
            {"path": "must be a path below the base URL, such as /servers/5, without query or fragment"},
            "the request",
        )
    for known in OPERATIONS:
        if known.method == method and re.fullmatch(re.sub(r"\{\w+\}", "[0-9]+", known.path), unquote(path)):
            return replace(
                known,
                route=f"{method} {path}",
                query=None,
                request=None,
                responses={200: RawResponse},
                expensive=known.expensive or expensive,
            )
    return Operation(
        id=f"{method} {re.sub('/[0-9]+(?=/|$)', '/{id}', path)}",
        route=f"{method} {path}",
        call="request",
        summary="",
        responses={200: RawResponse},
        expensive=expensive,
        is_keyed=keyed and method != "GET",
    )


def prepare(
    operation: Operation,
    query: Mapping[str, object],
    body: object,
    *,
    key: str | None,
    base_url: str,
    api_key: Secret,
) -> HttpRequest:
    """The request to send. Raises ``InvalidInput``, which repeats no value."""
    found: list[Secret] = []
    text = {name: _query_value(name, value) for name, value in query.items() if value is not None}
    payload = None if body is None else _payload(_revealed(body, found))
    accept, path = "application/json, application/pdf", operation.path
    headers = headers_of(operation, accept, key, payload is not None, api_key)
    redact = Redactor(found, own_key=api_key)
    return HttpRequest(operation, base_url + path, path, text, key, headers, payload, redact)


def _query_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise InvalidInput({name: "must be a text, a whole number, or true or false"}, "the request")


def _revealed(node: object, found: list[Secret]) -> object:
    """The body with its secrets as text. They are collected: those that are ``Secret``, and texts under the
    names of secrets.
    """
    if isinstance(node, Mapping):
        found += (
            Secret(value)
            for name, value in node.items()
            if isinstance(value, str) and is_secret_name(str(name))
        )
        return {name: _revealed(value, found) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return [_revealed(item, found) for item in node]
    if isinstance(node, Secret):
        found.append(node)
        return node.reveal()
    return node


def _payload(body: object) -> bytes:
    wrong = "must be made of what JSON has: objects, lists, texts, numbers, true, false and None"
    with suppress(PydanticSerializationError):  # it holds the body
        if len(payload := to_json(body)) <= MAX_BODY_BYTES:
            return payload
        wrong = f"is larger than {MAX_BODY_BYTES // 1024} KB"
    raise InvalidInput({"body": wrong}, "the request")
