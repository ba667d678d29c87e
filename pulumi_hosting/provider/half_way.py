"""What is said and kept of a creation or update that ended half way."""

from collections.abc import Mapping
from typing import Any

from pulumi_hosting.session.errors import ResourceError, WaitTimeout

PropertyValues = Mapping[str, Any]
_WAITS = "pulumi up, which waits for it; run it before destroy"
"""The next step for what is paid and in no state: a destroy alone would know nothing of it."""


class Partial(Exception):
    """Something was made and is not ready. ``refresh``: only a read can go on from here, since the id is
    not the final one yet.
    """

    def __init__(
        self,
        id: str,
        outputs: PropertyValues,
        reasons: list[str],
        *,
        refresh: bool,
        inputs: PropertyValues | None = None,
    ) -> None:
        self.id, self.outputs, self.reasons, self.refresh = id, dict(outputs), reasons, refresh
        self.inputs = None if inputs is None else dict(inputs)
        super().__init__()

    def __str__(self) -> str:
        return "; ".join(self.reasons)


def waited_in_vain(error: WaitTimeout) -> ResourceError:
    """For the dynamic provider, which cannot record an order: what to do about one that an earlier run
    placed.
    """
    return ResourceError(f"{str(error).partition(' Next:')[0]} Next: {_WAITS}")


def not_in_any_state(partial: Partial, title: str) -> ResourceError:
    """For the dynamic provider: an order is paid and cannot be recorded, unless it has ended: then
    nothing is paid for any more.
    """
    cause, reasons = partial.__context__, str(partial)
    if isinstance(cause, ResourceError) and not isinstance(cause, WaitTimeout):
        return ResourceError(reasons)
    kind, _, number = partial.id.partition(":")
    what = f"order {number}" if kind == "order" else f"{title} {partial.id}"
    return ResourceError(
        f"{reasons.partition(' Next:')[0].rstrip('.')}; {what} is paid and in no state. Next: {_WAITS}"
    )
