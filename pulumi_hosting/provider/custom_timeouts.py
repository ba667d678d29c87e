"""Pulumi's option ``custom_timeouts``. Dynamic providers do not get it: it travels among the properties."""

import re
from collections.abc import Mapping

import pulumi

from pulumi_hosting.provider.names import TIMEOUTS, PropertyValues

STEPS = ("create", "update", "delete", "read")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def seconds(text: str) -> float:
    """A duration as Pulumi writes it (``90s``, ``1h30m``). Raises ``ValueError``.

    >>> seconds("1h30m"), seconds("1.5s")
    (5400.0, 1.5)
    """
    parts = _PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration. Next: write it like 90s, 10m or 1h30m")
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def timeouts_of(opts: pulumi.ResourceOptions) -> dict[str, float]:
    """Step → seconds, of the steps that have one. Raises ``ValueError``."""
    given = opts.custom_timeouts
    if given is None:
        return {}
    if isinstance(given, Mapping):
        given = pulumi.CustomTimeouts(**given)
    return {step: seconds(str(text)) for step in STEPS if (text := getattr(given, step, None))}


def waiting_time(props: PropertyValues, step: str) -> float | None:
    """The custom timeout of ``step``, in seconds."""
    timeouts = props.get(TIMEOUTS)
    return timeouts.get(step) if isinstance(timeouts, Mapping) else None
