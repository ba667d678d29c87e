"""Arguments checked and made into the request to send. Pure functions; what they refuse is ``InvalidInput``,
which repeats no text.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from pulumi_hosting.api.models.body import RequestModel
from pulumi_hosting.api.operations import KEY_PATTERN, MAX_BODY_BYTES, Operation
from pulumi_hosting.api.reasons import reasons
from pulumi_hosting.api.secrets import REVEALED, Redactor, Secret, clean_text
from pulumi_hosting.api.values import id_number, passes
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.unset import UNSET

MAX_ANSWER_BYTES = 16 * 1024 * 1024
_NUMBER = re.compile("[0-9]{1,11}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What a value of a closed set looks like."""
_KINDS = {
    "me": ("", ""),
    "health": ("", ""),
    "keys": ("API key", "API keys"),
    "os": ("OS image", "OS images"),
    "ssh-keys": ("SSH key", "SSH keys"),
    "webhooks": ("webhook subscription", "webhook subscriptions"),
}
"""What is meant by a part of a path, one and many, if it does not say so itself."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it will be sent, in every attempt with the same bytes. What may be secret in it is not
    printed.

    ``redact`` removes the secrets that it carries from any text.
    """

    operation: Operation
    url: str
    path: str
    query: Mapping[str, str]
    idempotency_key: str | None
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    redact: Redactor = field(repr=False)
    timeout: float | None = None
    """Seconds for an attempt, if it is not what the transport allows."""

    @property
    def subject(self) -> str:
        """What it is about, as a person calls it: ``server 20001``, ``domain 'example.com'``, ``servers``."""
        kind, id = (*self.path.removeprefix("/catalog").split("/")[1:], "", "")[:2]
        one, many = _KINDS.get(kind, (kind.removesuffix("s"), kind))
        name = json.loads(self.body or "null")
        name = name.get("name") if isinstance(name, dict) else self.query.get("name")
        if id.isdigit():
            return f"{one} {id}"
        return f"{one} {clean_text(self.redact(name), 100)!r}" if name else many


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Status, headers (names in any case) and the whole body."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def rate_limit_numbers(headers: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    """Limit, remaining requests and reset of a bucket. What is no plain number is None."""
    texts = [headers.get(f"X-RateLimit-{part}", "").strip() for part in ("Limit", "Remaining", "Reset")]
    limit, remaining, reset = [int(text) if _NUMBER.fullmatch(text) else None for text in texts]
    return limit, remaining, reset


class NoFields(RequestModel):
    """The query, or the body, of an operation that takes none."""


def prepare(
    operation: Operation,
    ids: Sequence[int | str],
    query: Mapping[str, object],
    body: Mapping[str, object] | RequestModel,
    key: str | None = None,
    *,
    cursor: str | None = None,
    base_url: str,
    api_key: Secret,
) -> HttpRequest:
    """The request of an operation; fields that are ``UNSET`` are left out. A body that is a model already was
    checked when it was made. Raises ``InvalidInput``.
    """
    path = build_path(operation, ids)
    payload: bytes | None = None
    wrong: dict[str, str] = {}
    if isinstance(body, RequestModel) and type(body) is not operation.request:
        raise TypeError(f"{operation.id} takes no {type(body).__name__}")
    try:
        parameters, newer = _checked_query(operation.query, query)
        content = body if isinstance(body, RequestModel) else _checked(operation.request, body)
        if operation.request is not None and not (operation.body_optional and not content.model_fields_set):
            payload = content.model_dump_json(exclude_unset=True, by_alias=True, context=REVEALED).encode()
    except ValidationError as error:
        wrong = _reasons(error, operation)
    except PydanticSerializationError:
        wrong = {"(fields)": "one of the texts is not valid Unicode"}
    if payload is not None and len(payload) > MAX_BODY_BYTES:
        payload, wrong = None, {"(fields)": f"together they are larger than {MAX_BODY_BYTES // 1024} KB"}
    if wrong:  # raised outside of the except block: pydantic's error holds the refused values
        raise InvalidInput(wrong)
    text = query_text(operation, parameters) | newer
    if cursor is not None:
        text["cursor"] = cursor
    secrets = [value for value in vars(content).values() if isinstance(value, Secret)]
    accept = "application/json"
    if bytes in operation.responses.values():
        accept = f"application/pdf, {accept}"
    headers = headers_of(operation, accept, key, payload is not None, api_key)
    redact = Redactor(secrets, own_key=api_key)
    return HttpRequest(operation, base_url + path, path, text, key, headers, payload, redact)


def headers_of(
    operation: Operation, accept: str, key: str | None, has_body: bool, api_key: Secret
) -> dict[str, str]:
    """The headers of a request."""
    headers = {
        "Accept": accept,
        "Authorization": f"Bearer {api_key.reveal()}" if operation.auth else None,
        "Idempotency-Key": key,
        "Content-Type": "application/json" if has_body else None,
    }
    return {name: value for name, value in headers.items() if value is not None}


def _checked(model: type[RequestModel] | None, fields: Mapping[str, Any]) -> RequestModel:
    """The model of these fields. It is strict about lists and maps; callers may give any sequence and
    mapping.
    """
    return (model or NoFields)(
        **{
            name: {**value} if isinstance(value, Mapping) else [*value] if _is_list(value) else value
            for name, value in fields.items()
            if value is not UNSET
        }
    )


def _checked_query(
    model: type[RequestModel] | None, fields: Mapping[str, object]
) -> tuple[RequestModel, dict[str, str]]:
    """The model of these parameters, and those that hold a word which a closed set of this version lacks:
    the sets of the service grow, so the word is sent, and the service decides.
    """
    try:
        return _checked(model, fields), {}
    except ValidationError as error:
        newer = {
            str(problem["loc"][0]): problem["input"]
            for problem in error.errors(include_url=False, include_context=False)
            if problem["type"] == "literal_error"
            and isinstance(problem["input"], str)
            and _WORD.fullmatch(problem["input"])
        }
    return _checked(model, {name: value for name, value in fields.items() if name not in newer}), newer


def build_path(operation: Operation, ids: Sequence[int | str]) -> str:
    """The path with its ids filled in. An id is a whole number from 1 to 2^63-1, or its digits; anything else
    is ``InvalidInput``.
    """
    names = operation.path_parameters
    if len(ids) != len(names):
        raise InvalidInput(
            dict.fromkeys(names, "needed in the path") or {"ids": "the path has none"}, operation.id
        )
    wrong = {}
    path = operation.path
    for name, given in zip(names, ids, strict=True):
        number = id_number(given)
        if number is None:
            wrong[name] = "must be a whole number from 1"
        else:
            path = path.replace(f"{{{name}}}", quote(str(number), safe=""))
    if wrong:
        raise InvalidInput(wrong)
    return path


def check_body(operation: Operation, make: Callable[[], RequestModel]) -> None:
    """Raise ``InvalidInput`` if the body that ``make`` makes could not be sent."""
    ids = [1] * len(operation.path_parameters)
    try:
        prepare(operation, ids, {}, make(), base_url="", api_key=Secret(""))
        return
    except ValidationError as error:
        wrong = _reasons(error, operation)
    raise InvalidInput(wrong)  # outside of the except block: see prepare


def query_text(operation: Operation, parameters: RequestModel) -> dict[str, str]:
    """Query parameters as text; a query has no null, so what is ``None`` is left out."""
    sent = parameters.model_dump(mode="json", exclude_unset=True, by_alias=True)
    text = {name: str(value) for name, value in sent.items() if value is not None}
    # Half of a surrogate pair is a Python text, but no text that can be sent.
    wrong = [name for name, value in text.items() if not passes(str.encode, value)]
    if wrong:
        raise InvalidInput(dict.fromkeys(wrong, "is not valid Unicode"))
    return text


def _reasons(error: ValidationError, operation: Operation) -> dict[str, str]:
    """Field → what is wrong with it, the first reason of each."""
    fields = {
        name: info
        for model in (operation.query, operation.request)
        if model is not None
        for name, info in model.model_fields.items()
    }
    return {name or "(fields)": why for name, why in reasons(error, fields).items()}


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def checked_key(operation: Operation, given: str | None, new_id: Callable[[], str]) -> str | None:
    """The Idempotency-Key of a keyed operation, made here when none is given: before the first attempt, so
    that all carry the same.
    """
    if not operation.is_keyed:
        if given is not None:
            raise InvalidInput({"idempotency_key": "this operation takes none"})
        return None
    key = new_id() if given is None else given
    if not isinstance(key, str) or not re.fullmatch(KEY_PATTERN, key):
        raise InvalidInput(
            {"idempotency_key": "must be 16 to 128 printable ASCII characters without spaces"}, operation.id
        )
    return key
