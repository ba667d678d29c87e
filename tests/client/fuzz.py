"""Answers of every operation, damaged at one place each, and what the client makes of them."""

import copy
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
from pydantic import BaseModel

from pulumi_hosting.api.operations import BY_ID, Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.results import Damaged, Document, File, readable
from pulumi_hosting.emulator.middleware import route
from tests.client.support import BASE, KEY, FakeTime, dice
from tests.client.test_retries import call
from tests.contract.harness import ApiHarness, Receiver
from tests.contract.test_operations import PLAYS

HUGE_NUMBER, HUGE_TEXT = 10**400, "x" * 100_000
FREE_FORM = "payload"
"""What an event is about has no shape of its own."""
LONGEST_EXCHANGE = 30
"""More requests than any call needs: a client that sends more hangs on the answer."""
CUTS = 60
"""At so many places is each answer of a sample cut."""


@dataclass(frozen=True)
class Answer:
    """An answer of the emulator, as it was sent."""

    operation: Operation
    status: int
    content: bytes

    @property
    def body(self) -> Any:
        """The JSON; None where it is none."""
        return json.loads(self.content) if self.content.startswith(b"{") else None


@dataclass(frozen=True)
class Damage:
    """``how``: null, missing, wrong type, other scalar, huge, unknown, cut, or a page in its place."""

    answer: Answer
    how: str
    path: tuple[Any, ...]
    content: bytes

    def __str__(self) -> str:
        where = ".".join(map(str, self.path)) or "(all)"
        return f"{self.answer.operation.id} {self.answer.status}: {self.how} at {where}"


class _Recorder(httpx.BaseTransport):
    """Passes requests on, and keeps the answers."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.found: dict[tuple[str, int], bytes] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = self._inner.handle_request(request)
        content = response.read()
        if response.is_success:
            operation, *_ = route(request.method, request.url.path.removeprefix("/v1"))
            self.found[operation.id, response.status_code] = content
        return response


@cache
def answers() -> tuple[Answer, ...]:
    """One answer of each operation, for each of its statuses and, where the dialects differ in shape, for
    each dialect.
    """
    found = {}
    for dialect in ("spec", "live"):
        with Receiver() as receiver, ApiHarness.in_process(dialect, receiver) as api:
            api._transport = recorder = _Recorder(api._transport)
            for plays in PLAYS.values():
                for play in plays:
                    api.begin()
                    result = play(api)
                    if isinstance(result, BaseModel | Document) or not hasattr(result, "__iter__"):
                        continue
                    list(result)
        found.update(
            {(*key, dialect): Answer(BY_ID[key[0]], key[1], body) for key, body in recorder.found.items()}
        )
    shapes = {
        (id, status, frozenset(_places(answer.body))): answer for (id, status, _), answer in found.items()
    }
    return tuple(shapes.values())


def damages(answer: Answer, cuts: int | None) -> Iterator[Damage]:
    """Each place of the answer, damaged in each way; a page of a proxy in its place; and the answer cut short
    at so many places, or at all of them.
    """
    yield Damage(answer, "page", (), b"<html>Please log in</html>")
    # A document without a shape, and large: whatever is in it is what the service sent.
    is_open = answer.operation.responses.get(answer.status) is dict
    cuts = CUTS if is_open else cuts
    for path in () if is_open else _places(answer.body):
        if FREE_FORM in path[:-1]:
            continue
        value = _at(answer.body, path)
        for how, other in _replacements(value):
            yield Damage(answer, how, path, json.dumps(_changed(answer.body, path, how, other)).encode())
    whole = answer.content.rstrip() if answer.body is None else json.dumps(answer.body).encode()
    for offset in range(1, len(whole), max(1, len(whole) // cuts) if cuts else 1):
        yield Damage(answer, "cut", (offset,), whole[:offset])


def _replacements(value: Any) -> Iterator[tuple[str, Any]]:
    yield "null", None
    yield "missing", None
    if isinstance(value, dict | list):
        yield "wrong type", 77
        yield "other scalar", True
        return
    yield "wrong type", {"odd": ["odd"]}
    if isinstance(value, bool):
        yield "other scalar", "yes"
    elif isinstance(value, int | float):
        yield "other scalar", True
        yield "huge", HUGE_NUMBER
    elif isinstance(value, str):
        yield "other scalar", 7.5
        yield "huge", HUGE_TEXT
        yield "unknown", "unknown-value"


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node[:2]) if isinstance(node, list) else ()
    for key, value in items:
        yield from _places(value, (*path, key))


def _at(node: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        node = node[part]
    return node


def _changed(body: Any, path: tuple[Any, ...], how: str, other: Any) -> Any:
    copied = copy.deepcopy(body)
    parent = _at(copied, path[:-1])
    if how == "missing":
        del parent[path[-1]]
    else:
        parent[path[-1]] = other
    return copied


class _Replay:
    """A client that gets one answer again and again."""

    def __init__(self) -> None:
        self.content, self.status, self.sent = b"", 200, 0
        time = FakeTime()
        self.client = Client(
            KEY,
            BASE,
            transport=httpx.MockTransport(self._answer),
            clock=time.clock,
            sleep=time.sleep,
            rng=dice(),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        if self.sent > LONGEST_EXCHANGE:
            raise AssertionError("the client asks without end")
        return httpx.Response(self.status, content=self.content, headers={"Content-Type": "application/json"})

    def ask(self, answer: Answer, content: bytes) -> Any:
        """What the client makes of an answer, as plain data."""
        self.content, self.status, self.sent = content, answer.status, 0
        return plain(call(self.client, answer.operation))


def plain(result: Any) -> Any:
    """The result of a call as plain data."""
    if isinstance(result, BaseModel | Document | File) or not hasattr(result, "__iter__"):
        return shown(result)
    return [shown(row) for row in readable(result)[0]]


def shown(value: Any) -> Any:
    """A model as plain data; the fields that it requires and lacks are reported as ``AssertionError``."""
    if isinstance(value, BaseModel):
        data = {}
        for name, info in type(value).model_fields.items():
            found = getattr(value, name)
            if found is None and info.is_required():
                required = f"{type(value).__name__}.{name}"
                assert _may_be_none(info.annotation), f"required {required} is None"
            data[name] = shown(found)
        return data
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, list | tuple):
        return [shown(item) for item in value if not isinstance(item, Damaged)]
    return value


def _may_be_none(annotation: Any) -> bool:
    return type(None) in getattr(annotation, "__args__", ()) or annotation is Any


def problem(replay: _Replay, intact: Any, damage: Damage) -> str | None:
    """What is wrong with what the client makes of a damaged answer."""
    try:
        found = replay.ask(damage.answer, damage.content)
    except HostingError:
        return None
    except Exception as error:  # noqa: BLE001  # that is what is looked for
        return f"{damage}: {type(error).__name__}: {error}"
    if damage.how in ("cut", "page"):
        return f"{damage}: taken for the answer"
    sent = {"huge": (HUGE_TEXT,), "unknown": ("unknown-value",)}.get(damage.how, ())
    wrong = invented(found, intact, sent)
    return f"{damage}: {wrong}" if wrong else None


def invented(found: Any, intact: Any, sent: tuple[Any, ...]) -> str | None:
    """The first value that the service did not send."""
    if isinstance(found, dict) and isinstance(intact, dict | None):
        pairs = [(value, (intact or {}).get(name)) for name, value in found.items()]
    elif isinstance(intact, dict) and found == intact.get("name"):
        return None  # an object by its name, as older deployments answer
    elif isinstance(found, list) and isinstance(intact, list):
        rows = [row for row in found if row not in intact]
        if len(found) < len(intact) and not rows:
            return None  # what could not be read is left out, or reported as damaged
        pairs = [*zip(found, intact, strict=False)]
    else:
        allowed = found is None or found == [] or found == intact or str(found) in sent
        return None if allowed else f"{str(found)[:60]!r} for {str(intact)[:60]!r}"
    return next((wrong for value, right in pairs if (wrong := invented(value, right, sent))), None)


def problems(every: int = 1) -> tuple[int, list[str]]:
    """How many damaged answers were tried, and what is wrong. ``every``: only each so many of them."""
    replay, tried, found = _Replay(), 0, []
    for answer in answers():
        intact = replay.ask(answer, answer.content)
        for number, damage in enumerate(damages(answer, CUTS if every > 1 else None)):
            if (number + len(answer.operation.id)) % every == 0:
                tried += 1
                if wrong := problem(replay, intact, damage):
                    found.append(wrong)
    return tried, found


def main() -> int:
    """Try every damaged answer. Exit 1 where one is wrong."""
    tried, wrong = problems()
    operations = {answer.operation.id for answer in answers()}
    print(*wrong, sep="\n")
    print(f"{tried} damaged answers of {len(operations)} operations: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
