"""From an HTTP response to a typed result or an exception. Pure functions.

Unknown fields, enum values and codes are accepted. Damage is judged by its place: an optional fact becomes
``None``, an item of a list becomes :class:`~pulumi_hosting.client.results.Damaged`, and anything else (not
JSON, an id, money or a secret that is absent or of a wrong type) is an :class:`InvalidResponse` that names
the place and repeats no value.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, NoReturn
from urllib.parse import urlsplit

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from pulumi_hosting.api.metadata import Bucket, Meta, OriginalBody, RateLimit
from pulumi_hosting.api.models.body import Response
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.reasons import known_words, worded
from pulumi_hosting.api.secrets import Redactor, Secret, clean_text, shielded
from pulumi_hosting.client.exceptions import (
    NO_ENVELOPE,
    ApiError,
    InvalidResponse,
    RedirectRefused,
    error_class,
)
from pulumi_hosting.client.requests import MAX_ANSWER_BYTES, HttpRequest, HttpResponse, rate_limit_numbers
from pulumi_hosting.client.results import Damaged, Document, Done, File, RawResponse, file_name
from pulumi_hosting.client.retry import Attempts, parse_retry_after

log = logging.getLogger("pulumi_hosting")

LONGEST_NUMBER = 25
PDF_END = 1024
"""The last so many bytes of a PDF file hold its end mark."""
_DIGITS = bytes(ord("0") if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
_KEY_SENT = re.compile("Bearer vk_(live|test)_")
_ERROR = re.compile(rb'\s*\{\s*"error"')
# A pattern finds a short text in a page four times as fast as `in` does.
_NOT_A_NUMBER, _INFINITY = re.compile(b"NaN"), re.compile(b"Infinity")


def read(request: HttpRequest, answer: HttpResponse, meta: Meta, now: float) -> object:
    """The typed result, with ``meta``, or its error, raised. ``now`` is unix time, for a ``Retry-After`` that
    is a date.
    """
    operation, redact = request.operation, request.redact
    if 300 <= answer.status < 400:
        raise _redirect(operation, answer, meta)
    if not 200 <= answer.status < 300:
        raise refusal(request, answer, meta.request_id, now)
    kind: Any = operation.responses.get(answer.status) or operation.responses[operation.success]
    if kind is RawResponse:
        return _raw(answer, meta, redact)
    other = {None: _done, bytes: _file, dict: _open_object}.get(kind)
    found = other(answer, redact) if other else _parsed(request, kind, answer, meta)
    if isinstance(found, _Damage):
        what = f"the answer is not what the API document describes: {found.what}"
        raise _broken(meta, what, found.facts)
    # models are frozen for their users, not for us
    object.__setattr__(found, "_meta" if isinstance(found, Response) else "meta", meta)
    return found


def metadata(request: HttpRequest, status: int, headers: Mapping[str, str], attempts: Attempts) -> Meta:
    """The facts in the headers. The echoed request id is foreign text: it is cleaned; without one, ours is
    used.
    """
    echo = printable(headers.get("X-Request-ID", ""), request.redact, 128)
    return Meta(
        operation=request.operation.id,
        status=status,
        request_id=echo or attempts.sent_id,
        sandbox=headers.get("X-Sandbox", "").strip().lower() == "true",
        rate_limit=rate_limit(
            headers, "expensive" if request.operation.is_expensive(request.query) else "normal"
        ),
        idempotency_key=request.idempotency_key,
        attempts=attempts.count,
    )


def rate_limit(headers: Mapping[str, str], bucket: Bucket) -> RateLimit | None:
    """The state of the bucket; ``None`` if no header has it. A part that is no plain number is ``None``
    too.
    """
    limit, remaining, reset = rate_limit_numbers(headers)
    if limit is None and remaining is None and reset is None:
        return None
    return RateLimit(bucket, limit, remaining, None if reset is None else datetime.fromtimestamp(reset, UTC))


def printable(text: str, redact: Redactor, limit: int = 1000) -> str:
    """Foreign text made safe to print. Cleaned before our secrets are looked for, cut after: neither may hide
    one.
    """
    return clean_text(redact(clean_text(text, MAX_ANSWER_BYTES)), limit)


# --- success


@dataclass(frozen=True, slots=True)
class _Damage:
    """What is wrong with an answer. Returned, not raised: the frames of an error must not hold the body,
    which may hold a password.
    """

    what: str
    facts: Mapping[str, object] = field(default_factory=dict, repr=False)


def _parsed(
    request: HttpRequest, model: type[Response], answer: HttpResponse, meta: Meta
) -> Response | _Damage:
    # 204, or 200 with nothing: fine if nothing is required of the answer, an absent field otherwise.
    redact = request.redact
    body = redact.without_own_key(answer.body) if answer.body.strip() else b"{}"
    if has_odd_number(body):
        return _Damage("a number in it is not one that the API has")
    if _ERROR.match(body) and _is_error(body):
        return _Damage("it is an error with the status of a success")
    found: Response | _Damage
    try:
        found = model.model_validate_json(body)
        places = []
    except ValidationError as error:
        places = _places(error.errors(include_url=False, include_context=False, include_input=False), redact)
    if places:
        data = _json(body)
        if data is None or places[0].startswith("(whole answer)"):
            return _Damage(f"it is {_kind(answer)}, not JSON of the expected shape")
        found = _repaired(request, model, data, meta, places)
    if answer.body.strip() and isinstance(found, Response):
        # A service that repeats a secret in a field that this version does not know puts it into plain texts.
        secrets = [value for value in vars(found).values() if isinstance(value, Secret)]
        if secrets and found.model_extra:
            found.model_extra.update(_cleaned(found.model_extra, Redactor(secrets)))
            body = to_json({**from_json(body), **found.model_extra})
        # The result, and the items of a list, find the JSON that they were read from.
        original, items = OriginalBody(body), getattr(found, "data", None)
        object.__setattr__(found, "_original", (original, None))
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, Response):
                object.__setattr__(item, "_original", (original, index))
    return found


def _repaired(
    request: HttpRequest, model: type[Response], data: dict[str, object], meta: Meta, places: list[str]
) -> Response | _Damage:
    """What can be read of an answer that is damaged in these places."""
    from pulumi_hosting.client import lenient  # few processes ever need it

    kind = lenient.item_model(model)
    rows: object = []
    if kind is not None:  # a list, whose items are read one by one
        rows, data["data"] = data.get("data"), []
    if not isinstance(rows, list) or (found := lenient.from_damaged(model, data)[0]) is None:
        return _Damage("; ".join(places), lenient.readable_facts(data) if request.operation.is_write else {})
    if kind is not None:
        # frozen for users, and of a type that a model of the items would refuse
        found.__dict__["data"] = [_item(kind, row, meta, request.redact) for row in rows]
    log.debug(
        "%s: parts of the answer could not be read (request %s): %s",
        meta.operation,
        meta.request_id,
        "; ".join(places),
    )
    return found


def _item(kind: type[Response], row: object, meta: Meta, redact: Redactor) -> Response | Damaged:
    """An item of a list; one that cannot be read is in it as damaged."""
    from pulumi_hosting.client import lenient

    item, problems = lenient.from_damaged(kind, row)
    if item is not None:
        return item
    facts = {"id": row.get("id", row.get("invoice_id"))} if isinstance(row, dict) else {}
    known_id = lenient.readable_facts(facts).get("id")
    return Damaged(meta.operation, known_id, "; ".join(_places(problems, redact)), meta.request_id)


def _file(answer: HttpResponse, redact: Redactor) -> File | _Damage:
    if not answer.body.startswith(b"%PDF-"):
        return _Damage(f"it is {_kind(answer)}, not a PDF file")
    if b"%%EOF" not in answer.body[-PDF_END:]:
        return _Damage("the PDF file ends early")
    return File(answer.body, file_name(answer.headers.get("Content-Disposition", "")))


def _done(answer: HttpResponse, redact: Redactor) -> Done | _Damage:
    """An answer without a body, or with an object that tells more than it must. Anything else, such as the
    page of a proxy, does not show that it is done.
    """
    done = Done()
    if answer.body.strip():
        if _json(answer.body) is None or _is_error(answer.body):
            return _Damage(f"it is {_kind(answer)}, and should be empty")
        original = OriginalBody(redact.without_own_key(answer.body))
        object.__setattr__(done, "_original", (original, None))
    return done


def _open_object(answer: HttpResponse, redact: Redactor) -> Document | _Damage:
    found = _json(redact.without_own_key(answer.body))
    if found is None or has_odd_number(answer.body) or _is_error(answer.body):
        return _Damage(f"it is {_kind(answer)}, not a JSON object")
    return Document(found)


def _raw(answer: HttpResponse, meta: Meta, redact: Redactor) -> RawResponse:
    """What a success says: JSON, a PDF, or nothing. Raises ``InvalidResponse`` for anything else."""
    if answer.body.startswith(b"%PDF-"):
        file = File(answer.body, file_name(answer.headers.get("Content-Disposition", "")))
        file.meta = meta
        return RawResponse(file, meta)
    body = redact.without_own_key(answer.body)
    data: object = None
    is_json = not has_odd_number(body)
    if body.strip() and is_json:
        try:
            data = shielded(from_json(body, allow_inf_nan=False))
        except ValueError:  # the parser's error repeats the input: raised below
            is_json = False
    if not is_json or (isinstance(data, dict) and data.keys() == {"error"}):
        raise _broken(meta, "the answer is not JSON of a success")
    return RawResponse(data, meta)


def _json(body: bytes) -> dict[str, object] | None:
    with suppress(ValueError):  # the parser's error repeats the input: it must not become a context
        found = from_json(body, allow_inf_nan=False)
        return found if isinstance(found, dict) else None
    return None


def _is_error(body: bytes) -> bool:
    """Whether it is an error envelope and nothing else, which no success is."""
    return (_json(body) or {}).keys() == {"error"}


def _kind(answer: HttpResponse) -> str:
    if not answer.body:
        return "empty"
    return clean_text(answer.headers.get("Content-Type", "").split(";")[0].strip(), 64) or "of no named type"


def _places(problems: list[ErrorDetails], redact: Redactor) -> list[str]:
    found = []
    for problem in problems[:5]:
        place = ".".join(printable(str(part), redact, 64) for part in problem["loc"]) or "(whole answer)"
        found.append(f"{place}: {worded(problem)}")
    return found


def _broken(meta: Meta, what: str, facts: Mapping[str, object] | None = None) -> InvalidResponse:
    return InvalidResponse(
        what, operation=meta.operation, status=meta.status, request_id=meta.request_id, partial=facts
    )


def has_odd_number(body: bytes) -> bool:
    """Whether the JSON holds a NaN, an infinity or an integer no API has. Parsers let them pass if a field
    is unknown or unbounded.
    """
    # Every fifth byte shows at least five digits in a row of any number that is too long; nearly every answer
    # ends here.
    if not (
        b"00000" in body[::5].translate(_DIGITS)
        or (b"N" in body and _NOT_A_NUMBER.search(body))
        or (b"I" in body and _INFINITY.search(body))
    ):
        return False

    def refuse(text: str) -> NoReturn:
        raise ArithmeticError

    def bounded(text: str) -> int:
        return int(text) if len(text) <= LONGEST_NUMBER else refuse(text)

    try:
        json.loads(body, parse_constant=refuse, parse_int=bounded)
    except ArithmeticError:
        return True
    except (ValueError, RecursionError):
        pass  # no JSON at all: the caller reports that
    return False


# --- refusals


def refusal(request: HttpRequest, answer: HttpResponse, request_id: str, now: float) -> ApiError:
    """The error of a 4xx or 5xx answer; one without the API's envelope (a gateway's HTML) is judged by its
    status alone.
    """
    operation, redact = request.operation, request.redact
    error = (_json(answer.body) or {}).get("error")
    envelope = error if isinstance(error, dict) else {}
    code, message = envelope.get("code"), envelope.get("message")
    details, known_id = envelope.get("details"), envelope.get("request_id")
    if not isinstance(code, str) or not code:
        code = f"http_{answer.status}"
        message = f"the answer is {_kind(answer)} without the API's error envelope"
    sent = request.headers.get("Authorization")
    if code == "invalid_token" and sent is not None and not _KEY_SENT.match(sent):
        message = "keys begin with vk_live_ or vk_test_, and this one does not"
    # Every 404 of the service has the envelope. One without it is no proof that an object is gone.
    kind = ApiError if code == NO_ENVELOPE else error_class(answer.status, code)
    return kind(
        status=answer.status,
        code=printable(code, redact, 64),
        message=printable(message, redact) if isinstance(message, str) else "",
        request_id=printable(known_id, redact, 128) if isinstance(known_id, str) and known_id else request_id,
        details=_cleaned(details if isinstance(details, dict) else {}, lambda text: printable(text, redact)),
        retry_after=parse_retry_after(answer.headers.get("Retry-After"), now),
        operation=operation.id,
        given=partial(_given, request),
    )


_NAMED = frozenset(("name", "events", "event_type", "os", "gateway", "status", "type", "direction"))
"""Fields whose texts may be repeated: no user keeps a secret in them."""


def _given(request: HttpRequest, name: str) -> str:
    """What a refused field held, in words, and the words that this version knows for it."""
    body = _json(request.body or b"") or {}
    value = request.query.get(name, body.get(name))
    if not (name in _NAMED or isinstance(value, int)) or not isinstance(value, int | str | list):
        return ""
    words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    model = request.operation.query if name in request.query else request.operation.request
    info = model.model_fields.get(name) if model is not None else None
    choices = [word for word in known_words(info) if isinstance(word, str)] if info else []
    known = f"; this version knows {', '.join(choices)}" if choices else ""
    return f", given {printable(words, request.redact, 200)}{known}"


def _cleaned(node: object, clean: Callable[[str], str]) -> Any:
    """Foreign texts made safe, keys too."""
    if isinstance(node, dict):
        return {clean(name): _cleaned(value, clean) for name, value in node.items()}
    if isinstance(node, list):
        return [_cleaned(item, clean) for item in node]
    return clean(node) if isinstance(node, str) else node


def _redirect(operation: Operation, answer: HttpResponse, meta: Meta) -> RedirectRefused:
    try:
        host = urlsplit(answer.headers.get("Location", "")).hostname or "another place on the same host"
    except ValueError:
        host = "an unreadable place"
    return RedirectRefused(
        f"the service redirects to {clean_text(host, 100)} ({answer.status}), which is "
        "never followed: it would carry the API key there",
        outcome_unknown=operation.is_write,
        request_id=meta.request_id,
        operation=operation.id,
    )
