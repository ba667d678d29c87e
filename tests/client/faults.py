"""The faults of a connection, and answers that are none: what the service sends instead of its answer."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore

from tests.client.broken_network import SILENCE, Event, Pause
from tests.client.fuzz import Answer
from tests.client.support import KEY

SAME, ERROR, EITHER, NOTHING = "the answer", "an error", "the answer or an error", "no field or an error"
JSON = b"application/json"
RESET = httpcore.ReadError("reset")
PAGE = b"<html><body>Bad gateway. You sent:<pre>%s</pre></body></html>"
MEBIBYTE = b" " * 2**20
CONTINUE = b"HTTP/1.1 100 Go\r\n\r\n"

Send = Callable[[Answer, bytes], Iterable[Event]]
"""What the service sends, given the answer it should be, and the request."""
Change = Callable[[bytes], bytes]


def _nothing(answer: Answer, request: bytes) -> Iterable[Event]:
    return ()


@dataclass(frozen=True)
class Fault:
    """``expected``: what the caller gets. ``is_lost``: whether a write that meets this may have been carried
    out. ``connecting`` and ``writing``: what happens then, instead of success.
    """

    name: str
    expected: str
    send: Send = _nothing
    is_lost: bool = False
    connecting: Pause | Exception | None = None
    writing: Pause | Exception | None = None


# --- parts of answers


def http(
    body: bytes, *lines: bytes, status: int = 200, kind: bytes = JSON, length: bytes | int | None = -1
) -> bytes:
    """An answer. ``length``: of the header; -1: as it is; None: no such header."""
    head = [b"HTTP/1.1 %d Text" % status, b"X-Request-ID: from-the-service", *lines]
    if kind:
        head.append(b"Content-Type: " + kind)
    if length is not None:
        value = b"%d" % (len(body) if length == -1 else length) if isinstance(length, int) else length
        head.append(b"Content-Length: " + value)
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + end


def intact(answer: Answer, *lines: bytes) -> bytes:
    """The answer as the service sends it."""
    if answer.status == 204:
        return http(b"", *lines, status=204, kind=b"", length=None)
    return http(answer.content, *lines, status=answer.status)


def with_body(answer: Answer, body: bytes, *lines: bytes, **options: Any) -> bytes:
    """The answer with another body, and a status that may have one."""
    return http(body, *lines, status=200 if answer.status == 204 else answer.status, **options)


def _always(*events: Event) -> Send:
    return lambda answer, request: events


def _of(make: Callable[[Answer], bytes], *then: Event) -> Send:
    return lambda answer, request: [make(answer), *then]


def _body(change: Change, *lines: bytes, **options: Any) -> Send:
    return _of(lambda answer: with_body(answer, change(answer.content), *lines, **options))


def _repeating(first: bytes, *events: Event) -> Send:
    def send(answer: Answer, request: bytes) -> Iterator[Event]:
        yield first
        while True:
            yield from events

    return send


def _echoing(page: bytes, **options: Any) -> Send:
    return lambda answer, request: [http(page.replace(b"%s", request), **options)]


# --- the faults


def _faults() -> Iterator[Fault]:
    yield Fault("connection refused", ERROR, connecting=httpcore.ConnectError("refused"))
    yield Fault("no answer to the connect", ERROR, connecting=SILENCE)
    yield Fault("reset while sending", ERROR, writing=httpcore.WriteError("reset"), is_lost=True)
    yield Fault("stalled while sending", ERROR, writing=SILENCE, is_lost=True)
    ways: dict[str, list[Event]] = {"closed": [], "reset": [RESET], "silent": [SILENCE]}
    for way, ending in ways.items():
        yield from _cut(way, ending)
    yield from _framed()
    yield from _encoded()
    yield from _endless()
    yield from _of_status()
    yield from _of_proxies()
    yield from _of_another_protocol()


def _cut(way: str, ending: list[Event]) -> Iterator[Fault]:
    """Ended before, within and after the answer."""

    def head(share: float) -> Send:
        return _of(lambda a: intact(a)[: int(intact(a).index(b"\r\n\r\n") * share)], *ending)

    body = _of(lambda a: with_body(a, a.content + b" ")[:-1], *ending)
    yield Fault(f"{way} before the answer", ERROR, _always(*ending), is_lost=True)
    yield Fault(f"{way} within the status line", ERROR, head(0.1), is_lost=True)
    yield Fault(f"{way} within the headers", ERROR, head(0.6), is_lost=True)
    yield Fault(f"{way} within the body", ERROR, body, is_lost=True)
    yield Fault(f"{way} after the answer", SAME, _of(intact, *ending))


def _framed() -> Iterator[Fault]:
    """Content-Length, chunks, and the pieces that an answer comes in."""

    def of_length(value: bytes | None, *then: Event) -> Send:
        return _of(lambda a: with_body(a, a.content, length=value), *then)

    def half(answer: Answer) -> bytes:
        return with_body(answer, answer.content, length=len(answer.content) // 2)

    def more(answer: Answer) -> bytes:
        return with_body(answer, answer.content, length=len(answer.content) + 9)

    def in_chunks(change: Change, *lines: bytes) -> Send:
        return _body(change, b"Transfer-Encoding: chunked", *lines, length=None)

    yield Fault("no Content-Length, then closed", SAME, of_length(None))
    yield Fault("no Content-Length, then reset", ERROR, of_length(None, RESET), is_lost=True)
    yield Fault("Content-Length too short", EITHER, _of(half))
    yield Fault("Content-Length too long", ERROR, _of(more), is_lost=True)
    for value in (b"-1", b"ten", b"1, 2", b"9" * 30, b"0x10", b"+5"):
        yield Fault(f"Content-Length {value.decode()}", ERROR, of_length(value), is_lost=True)
    yield Fault("chunks", SAME, in_chunks(lambda c: chunked(c[:5], c[5:])))
    yield Fault("chunks and trailers", SAME, in_chunks(lambda c: chunked(c, end=b"0\r\nX-A: b\r\n\r\n")))
    yield Fault("extended chunks", SAME, in_chunks(lambda c: chunked(c).replace(b"\r\n", b";a=b\r\n", 1)))
    yield Fault("chunks and a Content-Length", SAME, in_chunks(chunked, b"Content-Length: 3"))
    broken: dict[str, Change] = {
        "chunks without the last": lambda c: chunked(c, end=b""),
        "a chunk that is too short": lambda c: b"ffffff\r\n" + c,
        "a chunk that is too long": lambda c: b"1\r\nxx" + c + b"\r\n0\r\n\r\n",
        "a chunk of an odd size": lambda c: b"zz\r\n" + c,
        "a chunk of a negative size": lambda c: b"-1\r\n" + c,
        "a chunk of a huge size": lambda c: b"f" * 40 + b"\r\n" + c,
    }
    for name, change in broken.items():
        yield Fault(name, ERROR, in_chunks(change), is_lost=True)
    unknown = _body(bytes, b"Transfer-Encoding: lzw", length=None)
    yield Fault("an unknown coding", ERROR, unknown, is_lost=True)
    yield Fault("small pieces", SAME, lambda answer, request: _pieces(intact(answer)))
    yield Fault("a slow answer", SAME, lambda answer, request: [Pause(20), intact(answer)])


def _pieces(whole: bytes) -> list[Event]:
    """One byte at a time; of a long answer, some more."""
    size = 1 + len(whole) // 4000
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _encoded() -> Iterator[Fault]:
    """Content-Type and Content-Encoding that do not fit."""
    for kind in (b"", b"text/plain", b"text/html; charset=utf-8", JSON + b"; charset=utf-16", b"\xff"):
        yield Fault(f"Content-Type {kind!r}", SAME, _body(bytes, kind=kind))
    packed: dict[str, tuple[str, Change]] = {
        "gzip": (SAME, gzip.compress),
        "gzip of two members": (SAME, lambda c: gzip.compress(c[:3]) + gzip.compress(c[3:])),
        "gzip that is none": (ERROR, lambda c: b"garbage" + c),
        "gzip that ends early": (ERROR, lambda c: gzip.compress(c)[:-9]),
        "gzip with a broken sum": (ERROR, lambda c: gzip.compress(c)[:-8] + b"\0" * 7 + b"\1"),
        "gzip with garbage behind": (EITHER, lambda c: gzip.compress(c) + b"garbage"),
        "gzip that unpacks to 20 MiB": (ERROR, lambda c: _bomb()),
    }
    for name, (expected, change) in packed.items():
        yield Fault(name, expected, _body(change, b"Content-Encoding: gzip"))
    for encoding in (b"deflate", b"br", b"zstd", b"\xff", b"gzip, gzip"):
        yield Fault(f"encoding {encoding!r}", ERROR, _body(gzip.compress, b"Content-Encoding: " + encoding))
    texts: dict[str, tuple[str, Change]] = {
        "gzip that is not named": (ERROR, gzip.compress),
        "UTF-16": (ERROR, lambda c: c.decode("latin-1").encode("utf-16")),
        "a byte order mark": (EITHER, lambda c: b"\xef\xbb\xbf" + c),
        "no UTF-8": (ERROR, lambda c: b"\xff" + c),
        "a NUL at the end": (EITHER, lambda c: c + b"\0"),
        "two answers in one": (EITHER, lambda c: c + c),
    }
    for name, (expected, change) in texts.items():
        yield Fault(name, expected, _body(change))


@cache
def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(MEBIBYTE) for _ in range(20)) + packer.flush()


def _endless() -> Iterator[Fault]:
    """What never ends is left after a bounded time and a bounded number of bytes."""
    head = http(b"", length=None)
    chunks = http(b"", b"Transfer-Encoding: chunked", length=None)
    ok = b"HTTP/1.1 200 OK\r\n"
    yield Fault("an endless body", ERROR, _repeating(head, MEBIBYTE))
    yield Fault("an endless body in chunks", ERROR, _repeating(chunks, chunked(MEBIBYTE, end=b"")))
    yield Fault("an endless size of a chunk", ERROR, _repeating(chunks, b"0" * 1000), is_lost=True)
    yield Fault("endless headers", ERROR, _repeating(ok, b"X-A: b\r\n" * 100), is_lost=True)
    yield Fault("an endless header", ERROR, _repeating(ok + b"X-A: ", b"b" * 1000), is_lost=True)
    yield Fault("endless 100 Continue", ERROR, _repeating(b"", CONTINUE, Pause(0.1)), is_lost=True)
    yield Fault("a body of a byte a second", ERROR, _repeating(head, Pause(1), b" "), is_lost=True)
    yield Fault("a header of a byte a second", ERROR, _repeating(ok, Pause(1), b"b"), is_lost=True)


def _of_status() -> Iterator[Fault]:
    """Statuses that the operation does not have."""
    for status in (100, 103):
        before = b"HTTP/1.1 %d Go\r\nLink: </a>\r\n\r\n" % status
        yield Fault(f"{status} before the answer", SAME, _body_after(before))
        yield Fault(f"{status} and then closed", ERROR, _always(before), is_lost=True)
    for status in (101, 199, 300, 304, 305, 600, 999):
        yield Fault(f"{status}", ERROR, _always(http(b"", status=status)))
    for status in (200, 202, 204, 205):
        head = b"HTTP/1.1 %d None\r\n" % status + (b"" if status == 204 else b"Content-Length: 0\r\n")
        yield Fault(f"{status} without a body", NOTHING, _always(head + b"\r\n"))
    for body in (b"[]", b"null", b'"text"', b"7", b"[" * 20_000, b'{"a":' * 20_000):
        yield Fault(f"200 with {body[:8]!r}", ERROR, _always(http(body)))
    elsewhere = b"https://elsewhere.example/v1/me?k=" + KEY.encode()
    for place in (elsewhere, b"/v1/me", b"http://[", b"//", b"\xff\xfe"):
        for status in (301, 302, 303, 307, 308):
            sent = _always(http(b"", b"Location: " + place, status=status))
            yield Fault(f"{status} to {place[:20]!r}", ERROR, sent, is_lost=True)


def _body_after(before: bytes) -> Send:
    return _of(lambda answer: before + intact(answer))


_GATEWAYS = (500, 502, 504, 520)
"""A gateway that answers so may have passed the request on."""


def _of_proxies() -> Iterator[Fault]:
    """Pages of a proxy that repeat the request, and envelopes of another shape."""
    for status in (200, 201, 400, 401, 402, 403, 404, 407, 409, 410, 413, 421, 429, 503, *_GATEWAYS):
        page = _echoing(PAGE, status=status, kind=b"text/html")
        yield Fault(f"page with {status}", ERROR, page, is_lost=status in _GATEWAYS)
    errors: dict[str, Any] = {
        "no object": KEY,
        "null": None,
        "a list": [KEY],
        "no code": {"message": KEY},
        "an odd code": {"code": 7, "message": [KEY], "request_id": {KEY: 1}, "details": KEY},
        "the key": {"code": KEY, "message": KEY, "request_id": KEY, "details": {KEY: [KEY]}},
        "control characters": {"code": "\x1b[2J\r\n", "message": "\x00\u202e" + KEY, "details": {"a": "\n"}},
    }
    for name, error in errors.items():
        for status in (200, 400, 404, 500, 503):
            sent = _always(http(json.dumps({"error": error}).encode(), status=status))
            yield Fault(f"error with {status}: {name}", ERROR, sent)
    for value in (b"soon", b"-1", b"1e99", b"nan", b"99999999999", b"\xff", b"Sun, 99 Nov 1994 08:49:37 GMT"):
        lines = b"Retry-After: " + value, b"X-RateLimit-Reset: " + value, b"Date: " + value
        for status in (429, 503):
            sent = _always(http(b"{}", *lines, status=status))
            yield Fault(f"{status} with Retry-After {value!r}", ERROR, sent)
        yield Fault(f"odd headers: {value!r}", SAME, _with_lines(lines))


def _with_lines(lines: Iterable[bytes]) -> Send:
    return _of(lambda answer: intact(answer, *lines))


def _of_another_protocol() -> Iterator[Fault]:
    """Bytes that are no HTTP/1.1."""
    key = KEY.encode()
    texts = {
        "HTTP/0.9": PAGE,
        "JSON without a head": b'{"data": []}',
        "an SSH server": b"SSH-2.0-OpenSSH_9.6\r\n",
        "an SMTP server": b"220 mail.example.com ESMTP\r\n",
        "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x28",
        "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80",
        "zeros": b"\0" * 5000,
        "empty lines": b"\r\n" * 50,
        "an odd status": b"HTTP/1.1 abc OK\r\n\r\n",
        "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
        "a header without a colon": b"HTTP/1.1 200 OK\r\n" + key + b"\r\n\r\n",
        "a header with a NUL": b"HTTP/1.1 200 OK\r\nX-A: \0" + key + b"\r\n\r\n",
        "a header with a space": b"HTTP/1.1 200 OK\r\nX A: " + key + b"\r\n\r\n",
    }
    for name, text in texts.items():
        yield Fault(name, ERROR, _always(text), is_lost=True)
    yield Fault("HTTP/1.0", SAME, _of(_of_old_version))
    yield Fault("an odd version", ERROR, _always(b"HTTP/3.7 500 OK\r\n\r\n"))
    yield Fault("its own request", ERROR, lambda answer, request: [request], is_lost=True)


def _of_old_version(answer: Answer) -> bytes:
    return with_body(answer, answer.content, length=None).replace(b"1.1", b"1.0", 1)


FAULTS = tuple(_faults())
