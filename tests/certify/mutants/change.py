"""How a mutant departs from the document: one function, one row or one answer of the emulator is changed.

Nothing is copied: each change wraps what the emulator has when the mutant starts, so two can be combined.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

from pulumi_hosting.emulator import middleware
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.handlers import HANDLERS
from pulumi_hosting.emulator.messages import Answer, Refusal

DOCUMENT = (Path(__file__).parent.parent / "hosting-client-api-v1.md").read_text(encoding="utf-8")

Change = Callable[[], AbstractContextManager[object]]
"""Starts a mutant; it ends with the block."""
Edit = Callable[[Answer], object]
Test = Callable[[Call], bool]


@dataclass(frozen=True)
class Mutant:
    """``what`` is wrong, and the ``sentences`` of the document that it breaks."""

    id: str
    what: str
    sentences: tuple[str, ...]
    change: Change
    area: str = ""


def breaks(sentences: str | tuple[str, ...], *mutants: tuple[Any, ...]) -> list[Mutant]:
    """Mutants that break these sentences: id, what is wrong, change; a fourth text is one more sentence."""
    quoted = (sentences,) if isinstance(sentences, str) else sentences
    return [
        Mutant(id, what, (*quoted, *also, *getattr(change, "breaks", ())), change)
        for id, what, change, *also in mutants
    ]


def row(start: str) -> str:
    """The line of the document that starts so: a row of a table, or an item of a list, quoted whole."""
    found = [line for line in DOCUMENT.splitlines() if line.startswith(start)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} lines start with {start}")
    return found[0]


def endpoint(route: str) -> str:
    """The row of an endpoint, under "Endpoints"."""
    return next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{route}`"))


def lines(pattern: str) -> tuple[str, ...]:
    """Every line of the document that has the pattern: for what breaks all of them."""
    return tuple(line for line in DOCUMENT.splitlines() if re.search(pattern, line))


# --- functions and rows -----------------------------------------------------------------------------------


def _wrapped(original: Callable[..., Any], new: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def changed(*given: Any, **named: Any) -> Any:
        return new(original, *given, **named)

    return changed


def around(owner: Any, name: str, new: Callable[..., Any]) -> Change:
    """A function is replaced by ``new``, which gets the original first."""

    def start() -> AbstractContextManager[object]:
        changed: Any = _wrapped(getattr(owner, name), new)
        return patch.object(owner, name, staticmethod(changed) if isinstance(owner, type) else changed)

    return start


def method(owner: type, name: str, new: Callable[..., Any]) -> Change:
    """The same for a method."""
    return lambda: patch.object(owner, name, _wrapped(getattr(owner, name), new))


def const(owner: Any, name: str, value: object) -> Change:
    return lambda: patch.object(owner, name, value)


def step(name: str, new: Callable[..., Any]) -> Change:
    """A step of the pipeline is replaced by ``new``, which gets the original and the call."""

    def start() -> AbstractContextManager[object]:
        if name not in [step.__name__ for step in middleware.PIPELINE]:
            raise ValueError(f"there is no step {name}")
        steps = [_wrapped(step, new) if step.__name__ == name else step for step in middleware.PIPELINE]
        return patch.object(middleware, "PIPELINE", tuple(steps))

    return start


def handler(operation: str, new: Callable[..., Any]) -> Change:
    """A handler is replaced by ``new``, which gets the original and the call."""
    handlers = cast(dict[str, Any], HANDLERS)
    return lambda: patch.dict(handlers, {operation: _wrapped(handlers[operation], new)})


def columns(operations: str, **values: object) -> Change:
    """Columns of the rows of these operations are changed."""

    def find(original: Callable[[Call], None], call: Call) -> None:
        original(call)
        if call.operation.id in operations.split():
            call.operation = replace(call.operation, **cast(Any, values))

    return step("find_operation", find)


def both(*changes: Change) -> Change:
    @contextmanager
    def start() -> Iterator[None]:
        with ExitStack() as stack:
            for change in changes:
                stack.enter_context(change())
            yield

    return start


def refuses(routes: str, code: str, when: Test = lambda call: True) -> Change:
    """Calls of these routes are refused."""

    def check(original: Callable[[Call], None], call: Call) -> None:
        original(call)
        if _is_one(call, routes) and when(call):
            raise Refusal(code)

    return step("validate", check)


# --- what is asked ----------------------------------------------------------------------------------------


def _is_one(call: Call, routes: str) -> bool:
    """``routes``: patterns such as ``GET /servers*``, several separated by ``|``."""
    operation = getattr(call, "operation", None)
    route = operation.route if operation else f"{call.request.method} {call.request.path}"
    return any(fnmatchcase(route, pattern.strip()) for pattern in routes.split("|"))


def of_test_key(call: Call) -> bool:
    key = middleware.presented_key(call)
    return key is not None and key.is_test


def of_live_key(call: Call) -> bool:
    key = middleware.presented_key(call)
    return key is not None and not key.is_test


def asked(routes: str, *edits: Callable[[Call], object], when: Test = lambda call: True) -> Change:
    """Requests of these routes are edited before they are checked."""

    def find(original: Callable[[Call], None], call: Call) -> None:
        original(call)
        if _is_one(call, routes) and when(call):
            for edit in edits:
                edit(call)

    return step("find_operation", find)


def query(name: str, new: Callable[[str], str | None] = lambda text: None) -> Callable[[Call], None]:
    """A parameter of the query is left out, or rewritten."""

    def edit(call: Call) -> None:
        asked = [(key, new(text) if key == name else text) for key, text in parse_qsl(call.request.query)]
        call.request.query = urlencode([(key, text) for key, text in asked if text is not None])

    return edit


def sent(name: str, new: Callable[[str], str | None]) -> Callable[[Call], None]:
    """A header of the request is rewritten, or left out if ``new`` gives ``None``."""

    def edit(call: Call) -> None:
        headers = dict(call.request.headers)
        value = new(headers.pop(name, ""))
        call.request.headers = headers if value is None else {**headers, name: value}

    return edit


def body(routes: str, new: Callable[[dict[str, Any]], object], when: Test = lambda call: True) -> Change:
    """The JSON of requests is edited after it was read."""

    def read(original: Callable[[Call], None], call: Call) -> None:
        original(call)
        if _is_one(call, routes) and isinstance(call.data, dict) and when(call):
            new(call.data)

    return step("read_body", read)


def only(*known: str) -> Callable[[dict[str, Any]], None]:
    """Every other field is ignored."""

    def edit(data: dict[str, Any]) -> None:
        for name in data.keys() - set(known):
            del data[name]

    return edit


# --- what is answered -------------------------------------------------------------------------------------


SUCCESS, ERRORS, ANY = range(200, 300), range(400, 600), range(600)


def answer(routes: str, *edits: Edit, on: range = SUCCESS, when: Test = lambda call: True) -> Change:
    """Answers of these routes with these statuses are edited before they are sent. ``*`` are all but the
    description, whose properties have the names of fields.
    """

    def is_one(call: Call, response: Answer) -> bool:
        described = routes == "*" and call.request.path == "/openapi.json"
        return _is_one(call, routes) and response.status in on and when(call) and not described

    return _sent(is_one, edits)


def refused(codes: str, *edits: Edit) -> Change:
    """Answers with one of these error codes are edited."""

    def is_one(_: Call, response: Answer) -> bool:
        body = response.body
        return isinstance(body, Mapping) and body.get("error", {}).get("code") in codes.split()

    change = _sent(is_one, edits)
    if any(getattr(edit, "of_code", False) for edit in edits):
        vars(change)["breaks"] = (row("- `code`: machine code from the closed lists"),)
    return change


def _sent(is_one: Callable[[Call, Answer], bool], edits: tuple[Edit, ...]) -> Change:
    def encode(original: Callable[[Call, Answer], None], call: Call, response: Answer) -> None:
        if is_one(call, response):
            response.body = deepcopy(response.body)  # the stored answer, or a cached part of it
            for edit in edits:
                edit(response)
        original(call, response)

    return around(Core, "_encode", encode)


def _places(value: Any, path: str) -> Iterator[tuple[Any, Any]]:
    """Containers and keys at ``path``: names and numbers between dots; ``*``: each; ``**``: at any depth."""
    first, _, rest = path.partition(".")
    if first == "**":
        yield from _places(value, rest)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _places(inner, path)
        return
    keys: list[Any] = [first] if isinstance(value, dict) and first in value else []
    if isinstance(value, list) and first.isdigit() and int(first) < len(value):
        keys = [int(first)]
    if first == "*":
        keys = (
            [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
        )
    for key in keys:
        if rest:
            yield from _places(value[key], rest)
        else:
            yield value, key


def drop(*paths: str) -> Edit:
    """These fields are missing."""

    def edit(response: Answer) -> None:
        for path in paths:
            for container, key in list(_places(response.body, path)):
                del container[key]

    return edit


def put(path: str, new: object) -> Edit:
    """A field has another value: ``new``, or what it makes of the old one."""

    def edit(response: Answer) -> None:
        for container, key in list(_places(response.body, path)):
            container[key] = new(container[key]) if callable(new) else new

    return edit


def rename(path: str, new: str) -> Edit:
    def edit(response: Answer) -> None:
        for container, key in list(_places(response.body, path)):
            if key in container:  # two lists may hold the same object
                container[new] = container.pop(key)

    return edit


def texts(pattern: str, new: Callable[[str], object]) -> Edit:
    """Every text that matches is rewritten, if it is not null."""

    def edit(response: Answer) -> None:
        for container, key in list(_places(response.body, "**.*")):
            if isinstance(container[key], str) and re.fullmatch(pattern, container[key]):
                container[key] = new(container[key])

    return edit


def whole(new: Callable[[Any], object]) -> Edit:
    """The body as a whole is another one."""

    def edit(response: Answer) -> None:
        response.body = new(response.body)

    return edit


def status(code: int) -> Edit:
    return _of_code(lambda response: setattr(response, "status", code))


def code(new: str) -> Edit:
    return _of_code(put("error.code", new))


def _of_code(edit: Edit) -> Edit:
    """An error with it is not in the document's list of codes by status."""
    vars(edit)["of_code"] = True
    return edit


def header(name: str, new: Callable[[str], str] | None = None) -> Edit:
    """A header of the answer is missing, or another one."""

    def edit(response: Answer) -> None:
        value = response.headers.pop(name, None)
        if value is not None and new is not None:
            response.headers[name] = new(value)

    return edit
