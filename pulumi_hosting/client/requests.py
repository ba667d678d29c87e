"""Arguments checked and made into what is sent. Pure functions; what they refuse is ``InvalidInput``, and no value is repeated in it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from pulumi_hosting.api.models import INT64, Request
from pulumi_hosting.api.operations import KEY_LENGTH, MAX_BODY_BYTES, Operation
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.unset import UNSET


def build_path(operation: Operation, ids: Sequence[int | str]) -> str:
    """The path with its ids filled in. An id is a whole number from 1 to 2^63-1, or its digits; anything else is ``InvalidInput``."""
    names = operation.path_parameters
    if len(ids) != len(names):
        raise InvalidInput(dict.fromkeys(names, "needed in the path") or {"ids": "the path has none"}, operation.id)
    wrong = {}
    path = operation.path
    for name, given in zip(names, ids, strict=True):
        number = _id_number(given)
        if number is None:
            wrong[name] = "must be a whole number from 1"
        else:
            path = path.replace(f"{{{name}}}", quote(str(number), safe=""))
    if wrong:
        raise InvalidInput(wrong, operation.id)
    return path


def _id_number(given: object) -> int | None:
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= 19:
        given = int(given)
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= INT64:
        return given
    return None


def validated(operation: Operation, model: type[Request] | None, fields: Mapping[str, Any]) -> Request | None:
    """The fields as the row's model, without those that are ``UNSET``; ``None`` where the operation takes none."""
    if model is None:
        if fields:
            raise InvalidInput(dict.fromkeys(fields, "is not a field of this operation"), operation.id)
        return None
    sent: dict[str, Any] = {}
    for name, value in fields.items():
        if value is not UNSET:
            # The models are strict about lists and maps; callers may give any sequence and mapping.
            is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
            sent[name] = [*value] if is_list else {**value} if isinstance(value, Mapping) else value
    try:
        return model(**sent)
    except ValidationError as error:
        wrong: dict[str, str] = {}
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            name = ".".join(str(part) for part in problem["loc"] if not str(part).startswith("function-")) or "(fields)"
            wrong.setdefault(name, problem["msg"].removeprefix("Value error, "))
    # Outside of the except block: pydantic's error holds the refused values.
    raise InvalidInput(wrong, operation.id)


def encoded(operation: Operation, content: Request) -> bytes | None:
    """The body as JSON; ``None`` where it may be left out and nothing was given."""
    if operation.body_optional and not content.model_fields_set:
        return None
    text = json.dumps(content.to_api(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not _is_unicode(text):
        raise InvalidInput({"(fields)": "one of the texts is not valid Unicode"}, operation.id)
    payload = text.encode()
    if len(payload) > MAX_BODY_BYTES:
        raise InvalidInput({"(fields)": f"together they are larger than {MAX_BODY_BYTES // 1024} KB"}, operation.id)
    return payload


def query_text(operation: Operation, fields: Request | None) -> dict[str, str]:
    """Query parameters as text; a query has no null, so what is ``None`` is left out."""
    sent = fields.to_api() if fields is not None else {}
    text = {name: str(value) for name, value in sent.items() if value is not None}
    wrong = [name for name, value in text.items() if not _is_unicode(value)]
    if wrong:
        raise InvalidInput(dict.fromkeys(wrong, "is not valid Unicode"), operation.id)
    return text


def _is_unicode(text: str) -> bool:
    """Half of a surrogate pair is a Python text, but no text that can be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_key(operation: Operation, given: str | None, new_id: Callable[[], str]) -> str | None:
    """The Idempotency-Key of a keyed operation, made here when none is given: before the first attempt, so that all carry the same."""
    if not operation.is_keyed:
        if given is not None:
            raise InvalidInput({"idempotency_key": "this operation takes none"}, operation.id)
        return None
    key = new_id() if given is None else given
    if not isinstance(key, str) or len(key) not in KEY_LENGTH or any(not "!" <= char <= "~" for char in key):
        raise InvalidInput({"idempotency_key": "must be 16 to 128 printable ASCII characters without spaces"}, operation.id)
    return key
