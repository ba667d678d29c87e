"""Durations as Pulumi writes them: `90s`, `1h30m`."""

import re

from pulumi.runtime.proto import resource_pb2

from ..errors import ProviderError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def timeouts(message: resource_pb2.RegisterResourceRequest.CustomTimeouts) -> dict[str, float]:
    """The `customTimeouts` of a registration, in seconds."""
    return {
        name: seconds(text)
        for name in ("create", "update", "delete", "read")
        if (text := getattr(message, name))
    }


def seconds(text: str) -> float:
    """A duration as Pulumi writes it (`90s`, `1h30m`), in seconds. Raises `ProviderError`."""
    parts = _DURATION.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise ProviderError(f"unable to parse customTimeout value {text!r}; write it like 90s, 10m or 1h30m")
    total = sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    return int(total) if total == int(total) else total
