"""The settings of a stack, or of a provider that a program declares: where each is read from, and what it
may be.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulumi_hosting.api.secrets import Secret, quoted
from pulumi_hosting.client.call_errors import with_next_step
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.settings import checked_store, key_of_environment, store_problem
from pulumi_hosting.planning.budget import Limit
from pulumi_hosting.planning.monthly_budget import MonthlyBudget
from pulumi_hosting.provider.names import PropertyValues, Props


class Setting(NamedTuple):
    """``kind``: its type in the package schema; ``hint``: its type in Python, if that says more. One of
    several types is sent as text."""

    description: str
    kind: str = "string"
    secret: bool = False
    hint: str = ""


STACK_SETTINGS: Mapping[str, Setting] = {
    "apiKey": Setting("API key: `vk_live_…`, or `vk_test_…` for simulated writes.", secret=True),
    "baseUrl": Setting("Address of the API, https, ending in `/v1`."),
    "mode": Setting(
        "`live` or `test`: change nothing with an API key of the other mode.", hint="Literal['live', 'test']"
    ),
    "maxCharge": Setting(
        "The most that one run may charge, a decimal in the account's currency.",
        hint="str | int | float",
    ),
    "budget": Setting(
        "The most that a calendar month (UTC) may cost, such as `100.00/month`. All debits of the month "
        "count, less refunds."
    ),
    "scope": Setting("A part of every identity, for stacks of the same project and name on one account."),
    "strict": Setting(
        "Turn two warnings into errors: a preview that cannot reach the API, and a takeover without a scope.",
        "boolean",
    ),
    "store": Setting(
        "A store in which several machines share rate limit, locks and notes: `redis://…` or `rediss://…`. "
        "By default each machine has its own.",
        secret=True,
    ),
    "rateLimitTimeout": Setting(
        "Seconds that a request may wait for the rate limit of the key. Default 600.", "number"
    ),
}
"""Of the stack or the provider."""

SETTINGS: Mapping[str, str] = {
    name: "HOSTING_" + re.sub("([A-Z])", r"_\1", name).upper() for name in STACK_SETTINGS
}
"""Setting → variable of the environment, which comes first."""

MODES = ("live", "test")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# An empty one of these would silently mean "no limit" or "another identity": an unset secret of a CI job, for
# example.
_NOT_EMPTY = frozenset({"maxCharge", "budget", "scope", "store"})


@dataclass(frozen=True, slots=True)
class StackSettings:
    """Checked values. ``limit``: what a run may charge; ``month``: what a calendar month may cost; ``scope``:
    a part of every identity; ``strict``: refuse what is otherwise only warned of; ``rate_limit_timeout``:
    seconds that a request may wait for the rate limit; ``store``: what several machines share.
    """

    api_key: Secret | None = None
    base_url: str | None = None
    mode: str | None = None
    limit: Limit = field(default_factory=Limit)
    month: MonthlyBudget = field(default_factory=MonthlyBudget)
    scope: str | None = None
    strict: bool = False
    rate_limit_timeout: float | None = None
    store: Secret | None = None

    @classmethod
    def of(cls, config: PropertyValues, environ: Mapping[str, str] = os.environ) -> "StackSettings":
        """Environment first, then ``config``: what an engine stores may be stale, the environment is not.
        Raises ``ConfigurationError``.
        """
        given: Props = {}
        for name, variable in SETTINGS.items():
            value: object = key_of_environment(environ) if name == "apiKey" else environ.get(variable)
            if value is None or (value == "" and name not in _NOT_EMPTY):
                value = config.get(name)
            if value is not None and (value != "" or name in _NOT_EMPTY):
                given[name] = value
        if failures := failures_of(given):
            named = (f"{name} ({SETTINGS[name]}): {reason}" for name, reason in failures.items())
            raise ConfigurationError(with_next_step("; ".join(named), failures))
        return cls(
            Secret(given["apiKey"]) if "apiKey" in given else None,
            str(given["baseUrl"]) if "baseUrl" in given else None,
            given.get("mode"),
            Limit.of(given),
            MonthlyBudget.of(given),
            given.get("scope"),
            _boolean(given.get("strict")) or False,
            _seconds(given.get("rateLimitTimeout")),
            checked_store(given.get("store")),
        )


def failures_of(config: PropertyValues, secrets: Collection[str] = ()) -> dict[str, str]:
    """Setting → reason, for those that cannot be used. Values that are not known yet are not checked, and
    those of ``secrets`` not repeated."""
    failures: dict[str, str] = {}
    mode, scope, strict = (config.get(name) for name in ("mode", "scope", "strict"))
    if isinstance(mode, str) and mode not in MODES:
        failures["mode"] = f"must be live or test, not {quoted(mode)}"
    if problem := Limit.of(config).problem:
        failures["maxCharge"] = problem
    if problem := MonthlyBudget.of(config).problem:
        failures["budget"] = problem
    if scope == "":
        failures["scope"] = "is empty. Next: give a name, or unset it"
    elif isinstance(scope, str) and not _SCOPE.fullmatch(scope):
        failures["scope"] = (
            f"must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit, not {quoted(scope)}"
        )
    if isinstance(strict, str | int | float) and strict != "" and _boolean(strict) is None:
        failures["strict"] = f"must be true or false, not {quoted(strict)}"
    store = config.get("store")
    if isinstance(store, str) and (problem := store_problem(store)):
        failures["store"] = f"{problem}. Next: correct it, or unset it"
    seconds = config.get("rateLimitTimeout")
    if isinstance(seconds, str | int | float) and seconds != "" and _seconds(seconds) is None:
        failures["rateLimitTimeout"] = f"must be seconds: 0 or more, at most 86400, not {quoted(seconds)}"
    for name in failures.keys() & {*secrets}:
        failures[name] = failures[name].replace(f", not {quoted(config[name])}", "")
    return failures


def _boolean(value: object) -> bool | None:
    return _BOOLEANS.get(str(value).lower())


def _seconds(value: Any) -> float | None:
    """A number of seconds within a day; None if it is none."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds <= 86400 else None
