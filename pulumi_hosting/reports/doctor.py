"""Whether this machine, this key and this service fit together: one check after the other, each with its next
step. Only reads are sent, at most ten.

Nothing is needed to begin: without a key, a base URL or a network it says so and checks what is left.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID, SCOPES
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import is_loopback
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.private_directory import LocalFilesError, check_platform, directory
from pulumi_hosting.client.redis_store import store_at
from pulumi_hosting.client.settings import (
    API_KEY_SOURCES,
    API_KEY_VARIABLE,
    BASE_URL_VARIABLE,
    STORE_VARIABLE,
    Settings,
    checked_store,
    settings,
)
from pulumi_hosting.installation import NEWER_VERSION
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.provider.names import class_of
from pulumi_hosting.reports import installed_versions
from pulumi_hosting.reports.account_objects import reading
from pulumi_hosting.reports.checks import Check, check, note, ok, problem, warning
from pulumi_hosting.reports.contract import differences
from pulumi_hosting.reports.module_scopes import MODULES
from pulumi_hosting.reports.report import counted
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.webhooks.signature import TOLERANCE_SECONDS

SECONDS = 20.0
"""How long one request may take, its repetitions included."""
CLOCK_WARNING = 30.0
EXPIRY_WARNING = timedelta(days=14)
_NO_KEY = "no-key-was-given"
_ADDITIONS_SHOWN = 10
_PAID_TIME_READS = ("list_servers", "list_domains", "list_invoices", "get_balance")

_CHECK_OF_CODE = {
    "invalid_token": "key",
    "key_expired": "expiry",
    "key_not_yet_valid": "expiry",
    "ip_not_allowed": "allow-list",
    "sandbox_disabled": "mode",
    "api_disabled": "service",
    "rate_limited": "limits",
}
"""Code of an error of ``GET /me`` → the check that it belongs to; others belong to the account."""


def checks(
    environ: Mapping[str, str] | None = None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[Check]:
    """Every check, in the order in which a new user needs them. Raises nothing."""
    environ = os.environ if environ is None else environ
    rest = {name: value for name, value in environ.items() if name != STORE_VARIABLE}
    address = _settings(rest, api_key=_NO_KEY)
    base_url = address.base_url if isinstance(address, Settings) else "https://api.example.com/v1"
    key = _settings(rest, base_url=base_url)
    yield _key(key)
    yield _base_url(address)
    unusable = "" if isinstance(address, Settings) else "base URL"
    if STORE_VARIABLE in environ:
        store = _shared_store(environ[STORE_VARIABLE])
        unusable = unusable or ("" if store.status == "ok" else "shared store")
        yield store
    if isinstance(address, Settings) and not unusable:
        given = key.api_key if isinstance(key, Settings) else _NO_KEY
        with _client(given, address.base_url) as client:
            yield from _service(client, key, environ, now)
    else:
        yield Check("warning", f"not asked: there is no {unusable} that can be used", name="service")
    yield _local_files()
    yield from installed_versions.checks(environ)


def _settings(environ: Mapping[str, str], **given: str) -> Settings | exceptions.ConfigurationError:
    """The settings, or what is wrong with the part that is not ``given``."""
    try:
        key, url = given.get("api_key"), given.get("base_url")
        return settings(key, url, timeout=SECONDS, deadline=SECONDS, environ=environ)
    except exceptions.ConfigurationError as error:
        return error


# --- what was given


@check("key")
def _key(found: Settings | exceptions.ConfigurationError) -> Check:
    if isinstance(found, exceptions.ConfigurationError):
        step = f"export {API_KEY_VARIABLE}=…, with a key from the control panel"
        if any(name in str(found) for name in API_KEY_SOURCES):
            step = ""  # the error has a better one
        return Check.of_error(found, step)
    if found.is_test_key:
        return ok("a test key: reads are real, changes are simulated", kind="test")
    if found.api_key.reveal().startswith("vk_live_"):
        is_here = is_loopback(urlsplit(found.base_url).hostname or "")
        money = ", and cost money unless this is an emulator" if is_here else " and cost money"
        return ok(f"a live key: changes are real{money}", kind="live")
    text = "it begins with neither vk_live_ nor vk_test_, and is taken for a live key"
    return warning(text, "compare it with the control panel", kind="unknown")


@check("base URL")
def _base_url(found: Settings | exceptions.ConfigurationError) -> Check:
    if isinstance(found, exceptions.ConfigurationError):
        step = f"export {BASE_URL_VARIABLE}=https://…/v1, as the provider's documentation names it"
        return Check.of_error(found, step)
    url = found.base_url
    version = re.search(r"/v([0-9]+)$", url)
    if version is None:
        text = f"{url} does not end in a version segment such as /v1"
        return warning(text, f"export {BASE_URL_VARIABLE}={url}/v1", base_url=url)
    if version[1] != "1":
        text = f"{url} is version {version[1]} of the API; this package speaks version 1"
        step = f"export {BASE_URL_VARIABLE}={url[: version.start()]}/v1"
        return warning(text, step, base_url=url)
    return ok(url, base_url=url)


@check("shared store")
def _shared_store(given: str) -> Check:
    try:
        store_at(checked_store(given)).living()
    except exceptions.HostingError as error:
        return Check.of_error(error)
    return ok(f"it answers; this run shares it with every run that has the same {STORE_VARIABLE}")


# --- what the service says


def _client(api_key: Secret | str, base_url: str) -> Client:
    return Client(
        api_key, base_url, timeout=SECONDS / 2, deadline=SECONDS, rate_limit_timeout=SECONDS, read_only=True
    )


def _service(
    client: Client,
    key: Settings | exceptions.ConfigurationError,
    environ: Mapping[str, str],
    now: Callable[[], datetime],
) -> Iterator[Check]:
    try:
        health = client.health()
    except exceptions.HostingError as error:
        step = ""
        if isinstance(error, exceptions.ApiError) and not client.base_url.endswith("/v1"):
            step = _with_version(client.base_url)
        yield Check.of_error(error, step, "service")
        return
    if health.status == "disabled":
        text = "it answers, but its staff have switched the API off: account and contract were not read"
        yield Check("problem", text, "wait, or contact the provider", name="service")
        yield _clock(client, now)
        return
    yield Check("ok", f"it answers, version {health.version or 'not named'} of the API", name="service")
    yield _clock(client, now)
    if isinstance(key, Settings):
        yield from _account(client, environ)
    yield _contract(client)


def _with_version(base_url: str) -> str:
    """The step that corrects a base URL without its version segment, if there is an API."""
    try:
        with _client(_NO_KEY, f"{base_url}/v1") as client:
            client.health()
    except exceptions.HostingError:
        return ""
    return f"export {BASE_URL_VARIABLE}={base_url}/v1"


@check("clock")
def _clock(client: Client, now: Callable[[], datetime]) -> Check:
    skew = (now() - client.service_now()).total_seconds()
    ahead = round(skew)
    if abs(skew) <= CLOCK_WARNING:
        return ok("this machine's clock is accurate to a few seconds", seconds_ahead=ahead)
    if is_loopback(urlsplit(client.base_url).hostname or ""):  # one machine has one clock
        other = f"{abs(skew):.0f} s {'behind' if skew > 0 else 'ahead'}"
        return note(f"the service on this machine has a time of its own, {other}", seconds_ahead=ahead)
    text = f"this machine's clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
    step = "set this machine's clock (timedatectl set-ntp true)"
    if abs(skew) >= TOLERANCE_SECONDS:
        return problem(f"{text}: webhook deliveries are refused", step, seconds_ahead=ahead)
    return warning(text, step, seconds_ahead=ahead)


def _account(client: Client, environ: Mapping[str, str]) -> Iterator[Check]:
    try:
        me = client.me()
    except exceptions.HostingError as error:
        yield _refusal(error)
        return
    yield Check("ok", f"number {me.account_id}", facts={"account_id": me.account_id}, name="account")
    yield _mode(client, me, environ)
    yield _expiry(client, me)
    yield _allow_list(me)
    yield scopes_check(me.scopes, is_test_key=not me.livemode)
    yield _balance(client, me)
    yield _limits(me)
    yield _paid_time(client, me)


def _refusal(error: exceptions.HostingError) -> Check:
    code = error.code if isinstance(error, exceptions.ApiError) else ""
    name = "limits" if isinstance(error, exceptions.RateLimitTimeout) else _CHECK_OF_CODE.get(code, "account")
    steps = {
        "invalid_token": f"export {API_KEY_VARIABLE}=…, with a key from the control panel: this one may be "
        "revoked, rotated or of another service",
        "ip_not_allowed": "add this machine's address to the key's allow-list in the control panel",
    }
    return Check.of_error(error, steps.get(code, ""), name)


@check("mode")
def _mode(client: Client, me: m.Me, environ: Mapping[str, str]) -> Check:
    mode = "live" if me.livemode else "test"
    declared = environ.get("HOSTING_MODE", "").strip()
    if client.is_test_key == me.livemode:
        looks = "test" if client.is_test_key else "live"
        text = f"the key looks like a {looks} key, and the service says {mode}"
        return problem(text, "contact the provider, and change nothing until then")
    if declared and declared != mode:
        text = f"HOSTING_MODE is {declared}, and this is a {mode} key: every change is refused"
        return problem(text, f"use a {declared} key, or unset HOSTING_MODE")
    return ok(mode, mode=mode)


@check("expiry")
def _expiry(client: Client, me: m.Me) -> Check:
    end = me.key.expires_at
    if end is None:
        return ok("the key does not expire", expires_at=None)
    left = end - client.service_now()
    text = f"the key expires on {end:%Y-%m-%d %H:%M} UTC"
    if left < EXPIRY_WARNING:
        days = f"in {left.days} days" if left.days > 1 else f"in {left.total_seconds() / 3600:.0f} h"
        return warning(f"{text}, {days}", "create another in the control panel", expires_at=end.isoformat())
    return ok(text, expires_at=end.isoformat())


@check("allow-list")
def _allow_list(me: m.Me) -> Check:
    entries = me.key.ip_allowlist or []
    text = "this machine's address is on it" if entries else "the key works from any address"
    return ok(text, entries=len(entries))


@check("balance")
def _balance(client: Client, me: m.Me) -> Check:
    (scope,) = BY_ID["get_balance"].scopes
    if scope not in me.scopes:
        return warning(f"not read: the key lacks {scope}", f"give the key {scope}")
    found = client.balance.get()
    text = f"{found.balance} {found.currency}"
    facts = {"balance": str(found.balance), "currency": found.currency}
    step = "top up in the control panel, or with hosting.cloud.balance_topup"
    if found.low_balance:
        due = f"{found.upcoming_7d} {found.currency} are due within 7 days"
        return warning(f"{text}; {due}", step, **facts)
    if found.balance <= 0:
        return warning(f"{text}: nothing can be ordered", step, **facts)
    return ok(text, **facts)


@check("paid time")
def _paid_time(client: Client, me: m.Me) -> Check:
    lacking = sorted({scope for id in _PAID_TIME_READS for scope in BY_ID[id].scopes} - {*me.scopes})
    if lacking:
        scopes = " and ".join(lacking)
        return warning(f"not read: the key lacks {scopes}", f"give the key {scopes}")
    limit = None if me.meta is None else me.meta.rate_limit
    if limit is not None and limit.remaining is not None and limit.remaining < 2 * len(_PAID_TIME_READS):
        return warning(f"not read: {limit.remaining} requests are left in this minute", "run it again later")
    paid = paid_time_of(reading(client, lambda line: None))
    uncovered = [paid.described(event) for event in paid.uncovered()]
    text, unread = paid.covers(), "; ".join(paid.refused.values())
    if uncovered:
        return replace(warning(f"{len(uncovered)} not paid for; {text}"), details=tuple(uncovered))
    return warning(f"not read completely: {unread}") if unread else ok(text)


@check("limits")
def _limits(me: m.Me) -> Check:
    found = None if me.meta is None else me.meta.rate_limit
    if found is None or found.limit is None or found.remaining is None:
        return warning("the service did not say how many requests are left")
    expensive = me.key.rate_expensive_per_minute
    facts = {"limit": found.limit, "remaining": found.remaining, "expensive_limit": expensive}
    text = f"{found.remaining} of {found.limit} normal requests left in this minute"
    told = "not named by the service" if expensive is None else f"{expensive} each minute"
    text += f"; expensive ones: {told}"
    if found.remaining * 10 <= found.limit:
        step = "wait a minute; stop what else uses this key, or give it a key of its own"
        return warning(text, step, **facts)
    return ok(text, **facts)


# --- the contract


@check("contract")
def _contract(client: Client) -> Check:
    try:
        found = differences(client.openapi())
    except exceptions.NotFound as error:  # every other request was answered, so the base URL is right
        text = f"the service has no /openapi.json ({error.status}, request {error.request_id or 'not named'})"
        return problem(f"{text}: nothing was compared", "report it to the provider")
    used = [row for row in found if row.kind != "added" or row.breaks]
    added = [row for row in found if row.kind == "added" and not row.breaks]
    facts = {"differences": [asdict(row) for row in found]}
    if not found:
        return ok(f"the service's API matches this version ({len(BY_ID)} operations)", **facts)
    details = [f"{row} (calls can fail)" if row.breaks else str(row) for row in used]
    details += map(str, added[:_ADDITIONS_SHOWN])
    if len(added) > _ADDITIONS_SHOWN:
        details.append(f"{len(added) - _ADDITIONS_SHOWN} more additions: --json lists them")
    breaking = sum(row.breaks for row in used)
    additions = f"{counted(len(added), 'addition')} that this package does not use"
    if not used:
        return ok(additions, "", details, **facts)
    text = f"{counted(len(used), 'difference')}, {breaking} of which can make calls fail; {additions}"
    step = f"{NEWER_VERSION}; if it is the newest, report the lines below"
    return (problem if breaking else warning)(text, step, details, **facts)


# --- this machine


@check("local files")
def _local_files() -> Check:
    step = "set HOSTING_RUNTIME_DIR to a directory on a local disk that is yours alone"
    try:
        check_platform()
        found = directory()
    except LocalFilesError as error:
        return Check.of_error(error)
    except OSError as error:
        return problem(f"locks cannot be kept: {error.strerror}", step)
    return ok(f"locks and notes in {found}", directory=str(found))


# --- what the key may not do


VERBS = ("read", "create", "update", "delete")
_UNUSED_BY_TEST_KEYS = frozenset(SCOPES) - {
    scope for row in BY_ID.values() if row.sandbox != "forbidden" for scope in row.scopes
}


@check("scopes")
def scopes_check(held: Collection[str], *, is_test_key: bool) -> Check:
    """A line for each resource and module that lacks a scope."""
    held = {*held, *(_UNUSED_BY_TEST_KEYS if is_test_key else ())}
    missing = [scope for scope in SCOPES if scope not in held]
    operations = {row.id: [*row.scopes] for row in BY_ID.values() if not {*row.scopes} <= {*held}}
    facts = {"missing": missing, "operations": operations}
    if not missing:
        return ok("the key has every scope this package needs", **facts)
    step = "add the scopes you need in the control panel; to look only, the read scopes are enough"
    details = (*_resources(held), *_modules(held))
    return warning(f"the key lacks {', '.join(missing)}", step, details, **facts)


def _resources(held: Collection[str]) -> Iterator[str]:
    for kind, resource in RESOURCES.items():
        lacking: dict[tuple[str, ...], list[str]] = {}
        for verb in VERBS:
            needed = tuple(scope for scope in resource.scopes[verb] if scope not in held)
            if needed:
                lacking.setdefault(needed, []).append(verb)
        if lacking:
            each = "; ".join(
                f"{', '.join(needed)} to {', '.join(verbs)}" for needed, verbs in lacking.items()
            )
            yield f"resource {class_of(kind)} lacks {each}"


def _modules(held: Collection[str]) -> Iterator[str]:
    for name, scopes in MODULES.items():
        if needed := [scope for scope in scopes if scope not in held]:
            yield f"module hosting.cloud.{name} lacks {', '.join(needed)}"
