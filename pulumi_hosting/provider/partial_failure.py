"""A creation or update that failed after something existed already, and what the state keeps of it."""

from dataclasses import dataclass, field

from pulumi_hosting.provider.names import PropertyValues
from pulumi_hosting.session.errors import ResourceError, WaitTimeout, and_then

_THEN = "pulumi up, which waits for it; run it before destroy"
_NEXT = f"Next: {_THEN}"
"""The next step for what is paid and in no state: a destroy alone would not know of it."""


@dataclass(eq=False)
class PartialFailure(Exception):
    """Something exists and is not ready. ``refresh``: only a read can go on from here, since the id is not
    the final one yet.
    """

    id: str
    outputs: PropertyValues = field(repr=False)
    reasons: list[str]
    refresh: bool = field(kw_only=True)
    inputs: PropertyValues | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__init__()  # without arguments: outputs and inputs hold passwords

    def __str__(self) -> str:
        return "; ".join(self.reasons)


def order_still_open(error: WaitTimeout) -> ResourceError:
    """For the dynamic provider, which cannot record an order: what to do about one that an earlier run
    placed.
    """
    return ResourceError(f"{str(error).partition(' Next:')[0]} {_NEXT}")


def paid_and_not_recorded(failure: PartialFailure, title: str) -> ResourceError:
    """For the dynamic provider: an order is paid and cannot be recorded, unless it has ended: then
    nothing is paid for any more.
    """
    cause, reasons = failure.__cause__, str(failure)
    if isinstance(cause, ResourceError) and not isinstance(cause, WaitTimeout):
        return ResourceError(reasons)
    kind, _, number = failure.id.partition(":")
    what = f"order {number}" if kind == "order" else f"{title} {failure.id}"
    step = and_then(cause, _THEN) if isinstance(cause, Exception) else _NEXT
    return ResourceError(
        f"{reasons.partition(' Next:')[0].rstrip('.')}; {what} is paid and in no state. {step}"
    )
