"""The requests of a run: sent within the limits, checked for what holds always, kept for a resumed run."""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from pulumi_hosting.certify.answers import HttpAnswer, masked
from pulumi_hosting.certify.document import AFTER, CHECKS
from pulumi_hosting.certify.kept_answers import KeptAnswers
from pulumi_hosting.certify.operations import STATUS_OF, is_expensive
from pulumi_hosting.certify.report import DEPARTURE, NOT_CHECKED, OK, Conformance, Finding, Stopped
from pulumi_hosting.certify.settings import RunSettings
from pulumi_hosting.certify.shapes import Shape, fits, format_problems, problems

T = TypeVar("T")

TEST, LIVE, NARROW = "test", "live", "narrow"
READER = "reader"
"""The key that reads: the test key, or the live key if it is the only one."""
LIMITS = {False: 120, True: 20}
ATTEMPTS = 4
SANDBOX_IDS = 9_000_000_000
BUSY_SECONDS, BUSY_PAUSE = 600, 5
_CURRENCIES = re.compile(rb'"currency":\s*"([^"]*)"')
_BUSY_IS_MEANT = ("limits.", "errors.", "http.", "servers.reset", "meta.health")
"""Checks for which 429 and 503 are answers like others."""
_MEANT_TO_LACK = ("servers.insufficient-funds", 402)
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_OPENS_NOTHING = re.compile(r"3|404|401|403 (?!insufficient_scope)|503 api_disabled")
_AUTHENTICATED = re.compile(r"(?!GET /(health|openapi\.json))")


class Skip(Exception):
    """The rest of this part cannot be checked: why."""


class Exchanges:
    """Sends and judges. ``keys``: those that were given, by name."""

    def __init__(self, settings: RunSettings) -> None:
        self.settings, self.clock = settings, settings.clock
        self.report = Conformance()
        self.results = {
            id: Finding(id, check.sentences, check.cost, detail="the run saw nothing to check it on")
            for id, check in CHECKS.items()
        }
        self.report.results = list(self.results.values())
        given = {TEST: settings.test_key, LIVE: settings.live_key, NARROW: settings.narrow_key}
        self.keys: Mapping[str, str] = {name: key for name, key in given.items() if key}
        self._scopes: dict[str, Any] = {}
        self.limits: dict[tuple[str, bool], int] = {}
        """Of a key and a bucket, once the settings of the key were read."""
        self.charged = Decimal("0.00")
        self.currency: str | None = None
        """That of the first amount."""
        self.sold_out: list[dict[str, Any]] = []
        """Tariffs that were not in stock before anything was ordered."""
        self.unread: list[str] = []
        self._made: dict[str, tuple[str, str, str]] = {}
        self._left: dict[tuple[str, bool], tuple[int, float]] = {}
        self._client = httpx.Client(
            transport=settings.transport, timeout=60, follow_redirects=False, trust_env=False
        )
        self._kept = KeptAnswers(settings.state_file, settings.base_url)
        self.id = self._kept.id
        """Of the run: part of every name and Idempotency-Key that it uses."""
        self._most = settings.max_requests
        self._once = secrets.token_hex(4)
        self.resumed = self._kept.resumed
        self.reader = TEST if TEST in self.keys else LIVE
        """The key that reads."""
        self.hooks: Any = None
        self.ordered = False
        """Whether a live server was ordered."""

    def __enter__(self) -> "Exchanges":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._kept.close()

    # --- verdicts

    def expect(self, check: str, holds: object, detail: str, answer: HttpAnswer | None = None) -> bool:
        """One observation. The first departure of a check stays.

        Where the deployment is busy, or key or account do not suffice, what was asked for cannot be seen:
        that is no departure.
        """
        result = self.results[check]
        is_busy = answer is not None and answer.status in (429, 503)
        if not holds and is_busy and not check.startswith(_BUSY_IS_MEANT):
            self.skip(detail, check)
        elif not holds and answer is not None and answer.lacks and (check, answer.status) != _MEANT_TO_LACK:
            if result.verdict == NOT_CHECKED:
                result.detail, result.request, result.answer = answer.lacks, answer.sent, answer.shown
        elif result.verdict != DEPARTURE:
            result.verdict, result.detail = (OK, "") if holds else (DEPARTURE, detail)
            if answer is not None:
                result.request, result.answer = answer.sent, answer.shown
        return bool(holds)

    def skip(self, why: str, *checks: str) -> None:
        """These were not checked. An earlier observation stays."""
        for check in checks:
            if self.results[check].verdict == NOT_CHECKED and not self.results[check].answer:
                self.results[check].detail = why

    def skip_areas(self, why: str, areas: str) -> None:
        """The same for every check whose id begins with one of these."""
        self.skip(why, *(id for id in self.results if id.startswith(tuple(areas.split()))))

    def part(self, areas: str, work: Callable[..., object], *given: object) -> None:
        """A part of the run. What it cannot go on with skips these checks, and the next part follows."""
        try:
            work(*given)
        except Skip as why:
            self.skip_areas(str(why), areas)
        except _UNREADABLE as error:
            # An answer without a field that the part goes on with: most often a departure already.
            words = f"an answer lacked what the next step needs ({type(error).__name__}: {error})"
            self.skip_areas(words, areas)
            self.unread.append(f"{getattr(work, '__name__', work)}: {words}")

    def shape(self, check: str, value: object, shape: Shape, answer: HttpAnswer) -> bool:
        found = list(problems(value, shape))
        return self.expect(check, not found, "; ".join(found), answer)

    def each(self, check: str, answer: HttpAnswer, shape: Shape) -> None:
        """Every object of a list has this shape."""
        for entry in answer.items:
            self.shape(check, entry, shape, answer)

    def status(
        self,
        check: str,
        answer: HttpAnswer,
        *allowed: int,
        code: str | None = None,
        shape: Shape | None = None,
    ) -> bool:
        """The answer has one of these statuses, this code, and then this shape.

        A code with another status than the document's departs once, in ``errors.codes``.
        """
        words = " or ".join(map(str, allowed)) + (f" {code}" if code else "")
        of_code = STATUS_OF.get(str(answer.code)) if 400 <= answer.status < 500 else None
        statuses = (answer.status, of_code)
        holds = any(status in allowed for status in statuses) and code in (None, answer.code)
        has_status = self.expect(check, holds, f"answered {answer.short}, not {words}", answer)
        return has_status and (shape is None or self.shape(check, answer.data, shape, answer))

    def same(self, check: str, what: str, found: object, expected: object, answer: HttpAnswer) -> bool:
        return self.expect(check, found == expected, f"{what} is {found}, not {expected}", answer)

    def has(self, check: str, answer: HttpAnswer, **expected: object) -> None:
        """The object of the answer has these fields."""
        for name, value in expected.items():
            self.same(check, name, answer.body.get(name), value, answer)

    # --- requests

    def step(self, name: str) -> str:
        """The Idempotency-Key of a step: the same when the run is resumed."""
        return hashlib.sha256(f"{self.id} {name}".encode()).hexdigest()[:32]

    def get(self, path: str, who: str | None = READER, **options: Any) -> HttpAnswer:
        return self.call("GET", path, who, **options)

    def read(
        self, check: str, path: str, who: str | None = READER, shape: Shape | None = None, **options: Any
    ) -> HttpAnswer:
        """A GET that is answered with 200 and this shape."""
        answer = self.get(path, who, **options)
        self.status(check, answer, 200, shape=shape)
        return answer

    def refused(
        self,
        check: str,
        status: int,
        call: str,
        who: str | None = READER,
        code: str | None = None,
        **options: Any,
    ) -> HttpAnswer:
        """A call, such as ``POST /servers``, that is answered with this status and code."""
        method, _, path = call.partition(" ")
        answer = self.call(method, path, who, **options)
        self.status(check, answer, status, code=code)
        return answer

    def until(
        self, look: Callable[[], T], seconds: int, pause: int, is_it: Callable[[T], object] = bool
    ) -> T:
        """What is seen, looked at every ``pause`` seconds until it is what is waited for; after ``seconds``,
        what was seen last.
        """
        for _ in range(seconds // pause):
            found = look()
            if is_it(found):
                break
            self.clock.sleep(pause)
        return found

    def call(
        self,
        method: str,
        path: str,
        who: str | None = READER,
        *,
        json_body: object = None,
        content: bytes | None = None,
        step: str | None = None,
        headers: Mapping[str, str] | None = None,
        kept: bool = False,
        wait: bool = True,
        flood: bool = False,
        stored: bool = False,
    ) -> HttpAnswer:
        """Send a request with the key named ``who``; ``None``: with none.

        ``step``: with its Idempotency-Key. ``kept``: its answer is kept in the state file, and a resumed run
        does not send it again. ``wait``: send again after 429 and 503, and
        when the operation that is running on the object has ended. ``flood``: do not even wait for a new
        window. ``stored``: the answer may be a replay, whose body can have the request id of the first.
        """
        sent_headers = {"Accept": "application/json, application/pdf"}
        who = self.reader if who == READER else who
        if who is not None:
            sent_headers["Authorization"] = f"Bearer {self.keys[who]}"
        if step:
            sent_headers["Idempotency-Key"] = self.step(step if kept else f"{step} {self._once}")
        if json_body is not None:
            content = json.dumps(json_body).encode()
            sent_headers["Content-Type"] = "application/json"
        sent_headers |= headers or {}
        sent = f"{method} {path}" + (f" ({who} key)" if who else " (no key)")
        if json_body is not None:
            sent += f" {masked(json_body)}"
        if kept and (known := self._kept.take(sent)) is not None:
            known.lacks = self._lacking(known, who)
            return known
        bucket = bool(is_expensive(f"{method} {path}"))
        attempt = busy = 0
        while True:
            if not flood and who is not None:
                self._wait_for_limit(who, bucket)
            answer = self._send(method, path, sent_headers, content, sent)
            if wait and busy < BUSY_SECONDS and answer.is_(409, "operation_in_progress"):
                busy += BUSY_PAUSE
                self.clock.sleep(BUSY_PAUSE)
                continue
            if not (wait and not flood and answer.status in (0, 429, 503)) or (attempt + 1 == ATTEMPTS):
                break
            if answer.status == 0 and method != "GET" and not step:
                break
            if answer.code == "api_disabled":
                break
            self.clock.sleep(min(_whole(answer.headers.get("retry-after")) or 1, 61))
            attempt += 1
        if answer.status == 0:
            raise Stopped(f"{method} {path} was not answered. Next: run the same command again")
        self._check_every(answer, who, f"{method} {path}", stored)
        answer.lacks = self._lacking(answer, who)
        if kept:
            self._kept.add(answer)
        return answer

    def unusable(self) -> str:
        """Why the run cannot begin: what was given opens nothing at this address. Empty if it can."""
        for who, key in self.keys.items():
            sent = {"Authorization": f"Bearer {key}"}
            seen = [self._send("GET", path, sent, None, path) for path in ("/me", "/catalog/locations")]
            first, second = (answer.short for answer in seen)
            if first == second and (_OPENS_NOTHING.match(first) or not any(answer.data for answer in seen)):
                url = self.settings.base_url
                if first.startswith("401"):
                    return f"GET /me answered {first} to the {who} key. Next: give a key of {url}"
                words = f"no API answers at {url}: {first} for the {who} key, whatever is asked for"
                return f"{words}. Next: correct --base-url, which ends in /v1, or the key"
            self._scopes[who] = seen[0].body.get("scopes")
        return ""

    def _lacking(self, answer: HttpAnswer, who: str | None) -> str:
        required: Any = answer.details.get("required")
        balance: Any = answer.details.get("balance")
        if who in (TEST, LIVE) and answer.is_(403, "insufficient_scope") and isinstance(required, list):
            missing = [str(scope) for scope in required if scope not in (self._scopes[who] or required)]
            return f"the {who} key lacks {' and '.join(missing)}" if missing else ""
        is_poor = fits(balance, "money") and fits(required, "money") and Decimal(balance) < Decimal(required)
        return "the balance of the account does not cover it" if answer.is_(402) and is_poor else ""

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes | None, sent: str
    ) -> HttpAnswer:
        if self.report.requests >= self._most:
            raise Stopped(f"{self._most} requests were sent. Next: a larger --max-requests")
        self.report.requests += 1
        try:
            response = self._client.request(
                method, self.settings.base_url.rstrip("/") + path, headers=dict(headers), content=content
            )
        except httpx.HTTPError:
            return HttpAnswer(sent, 0)
        found = {name.lower(): value for name, value in response.headers.items()}
        return HttpAnswer(sent, response.status_code, found, response.content)

    def _wait_for_limit(self, who: str, bucket: bool) -> None:
        left, reset = self._left.get((who, bucket), (1, 0.0))
        if left <= 0 and (seconds := reset - self.clock.now()) > 0:
            self.clock.sleep(min(seconds, 61.0))
        if left <= 0:
            self._left.pop((who, bucket), None)

    def _note_limit(self, answer: HttpAnswer, who: str, call: str) -> None:
        if (limit := _whole(answer.headers.get("x-ratelimit-limit"))) is None:
            return
        bucket = is_expensive(call)
        if bucket is None:
            bucket = limit == self.limits.get((who, True), LIMITS[True])
        left = _whole(answer.headers.get("x-ratelimit-remaining"))
        reset = _whole(answer.headers.get("x-ratelimit-reset"))
        if left is not None and reset is not None:
            # The service's clock may differ from ours, so only the difference counts.
            self._left[who, bucket] = (left, self.clock.now() + max(0.0, self.until_reset(answer)) + 0.5)

    # --- what holds for every answer

    def _check_every(self, answer: HttpAnswer, who: str | None, call: str, stored: bool) -> None:
        headers, data = answer.headers, answer.data
        self.expect("http.request-id", headers.get("x-request-id"), "there is no X-Request-ID", answer)
        if who is not None and self.keys[who].startswith("vk_test_"):
            marked = headers.get("x-sandbox") == "true"
            self.expect("sandbox.header", marked, "there is no X-Sandbox: true", answer)
        is_bare = answer.status >= 400 and not answer.body  # no envelope: that has its check
        if answer.content and not is_bare and not call.endswith("/pdf"):
            is_json = data is not None and "json" in headers.get("content-type", "")
            self.expect("http.json", is_json, "the answer is not JSON", answer)
        wrong: dict[str, list[str]] = {"money": [], "time": []}
        if call != "GET /openapi.json":
            self._check_currency(answer)
            for kind, words in format_problems(data):
                wrong[kind].append(words)
            self.expect("money.format", not wrong["money"], "; ".join(wrong["money"][:5]), answer)
            self.expect("time.format", not wrong["time"], "; ".join(wrong["time"][:5]), answer)
        if answer.status >= 400 and call != "GET /health":
            self._check_error(answer, stored)
        if who is not None and answer.ok and _AUTHENTICATED.match(call):
            self._check_limit_headers(answer, who, call)
        if who is not None:
            self._note_limit(answer, who, call)

    def _check_currency(self, answer: HttpAnswer) -> None:
        for found in {text.decode(errors="replace") for text in _CURRENCIES.findall(answer.content)}:
            self.currency = self.currency or found
            is_code = re.fullmatch("[A-Z]{3}", found) is not None
            words = f"currency is {found!r}: no ISO 4217 code, or not that of the account ({self.currency})"
            self.expect("money.currency", is_code and found == self.currency, words, answer)

    def until_reset(self, answer: HttpAnswer) -> float:
        """Seconds to the end of the window, by the clock of the deployment."""
        now = self.clock.now()
        with suppress(KeyError, ValueError, TypeError):  # without a date it is ours
            now = parsedate_to_datetime(answer.headers["date"]).timestamp()
        return (_whole(answer.headers.get("x-ratelimit-reset")) or 0) - now

    def _check_error(self, answer: HttpAnswer, stored: bool) -> None:
        error, code = answer.error, answer.code
        texts = all(isinstance(error.get(name), str) for name in ("code", "message", "request_id"))
        whole = texts and isinstance(error.get("details", {}), dict)
        self.expect("errors.envelope", whole, "the error is not in the envelope", answer)
        if not stored:
            same = error.get("request_id") == answer.headers.get("x-request-id")
            self.expect("errors.request-id", same, "request_id is not X-Request-ID", answer)
        if code in STATUS_OF and answer.status < 500:
            self.same("errors.codes", f"the status of {code}", answer.status, STATUS_OF[code], answer)
        if answer.status in (429, 503):
            has = _whole(answer.headers.get("retry-after")) is not None
            self.expect("limits.retry-after", has, "there is no Retry-After in seconds", answer)

    def _check_limit_headers(self, answer: HttpAnswer, who: str, call: str) -> None:
        names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
        limit, left, reset = (_whole(answer.headers.get(name)) for name in names)
        if limit is None or left is None or reset is None:
            found = ", ".join(f"{name}: {answer.headers.get(name, 'missing')}" for name in names)
            self.expect("limits.headers", False, f"a header is missing or no number: {found}", answer)
            return
        ahead = self.until_reset(answer)
        fits = 0 <= left < limit and -2 <= ahead <= 62
        words = f"{left} of {limit} left, reset in {ahead:.0f} s: not within a window of 60 s"
        self.expect("limits.headers", fits, words, answer)
        bucket = is_expensive(call)
        known = None if bucket is None else self.limits.get((who, bucket))
        if bucket is not None and known is not None:
            is_other = limit == self.limits.get((who, not bucket))
            check = "limits.expensive" if bucket or is_other else "limits.normal"
            self.same(check, "X-RateLimit-Limit", limit, known, answer)
            before = self._left.get((who, bucket))
            if before and before[0] > 0 and before[1] - self.clock.now() > 2 and ahead > 2:
                words = f"X-RateLimit-Remaining is {left} after {before[0]}"
                self.expect("limits.remaining", left < before[0], words, answer)

    def is_fake(self, id: object) -> bool:
        """Whether an id is that of a simulated server."""
        return isinstance(id, int) and id >= SANDBOX_IDS

    def needs_scope(self, scope: str, method: str, path: str) -> None:
        """A key without the scope is refused where a key with it is answered."""
        has = self._scopes.get(NARROW)
        if isinstance(has, list) and scope not in has:
            answer = self.call(method, path, NARROW)
            words = f"{method} {path} was answered to a key without {scope}"
            self.expect(f"scopes.{scope.replace(':', '-')}", not answer.ok, words, answer)

    # --- what the deployment chose

    def reading(self, name: str, value: object) -> None:
        """Which of the readings of the document that are allowed the deployment has."""
        self.report.profile.setdefault("readings", {}).setdefault(name, value)

    # --- what the run made

    def made(self, thing: str, method: str, path: str, who: str) -> None:
        """Something that has to be removed with this call; no method: it can only be named."""
        self._made[path] = (thing, method, who)

    def removed(self, path: str) -> None:
        self._made.pop(path, None)

    def clean_up(self) -> None:
        """Remove what is left, also beyond the bound of requests. Then there is nothing to resume."""
        self._most += 50
        whole = True
        for path, (thing, method, who) in list(self._made.items()):
            try:
                if method and self.call(method, path, who, step=f"clean up {path}").status in (200, 204, 404):
                    continue
            except Stopped:
                pass
            self.left_behind(thing)
            whole = False
        self._made.clear()
        if whole:
            self._kept.forget()

    def settle(self) -> None:
        """A departure that may only follow from another one is not told."""
        departed = {result.check for result in self.report.departures}
        for result in self.report.departures:
            causes = sorted(departed & set(AFTER.get(result.check, ())))
            if causes:
                result.verdict = NOT_CHECKED
                result.detail = f"{result.detail}; this can follow from {', '.join(causes)}"

    # --- money

    def may_spend(self, most: Decimal, what: str) -> None:
        """Raises :class:`Skip` if a charge of ``most`` would be more than ``--spend`` allows."""
        if self.charged + most > self.settings.spend:
            raise Skip(f"{what} costs {most}, and --spend leaves {self.settings.spend - self.charged}")

    def left_behind(self, thing: str) -> None:
        if thing not in self.report.left_behind:
            self.report.left_behind.append(thing)


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None
