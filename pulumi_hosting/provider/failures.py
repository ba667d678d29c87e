"""What goes wrong, as the person who waits for Pulumi reads it: one line, and no values of variables. And
what the state keeps of a creation or update that failed after something existed already.
"""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NoReturn

from pulumi_hosting.api.error_codes import parted
from pulumi_hosting.client.call_errors import with_next_step
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.words import COMMAND_LINE
from pulumi_hosting.provider.names import NAME, PropertyValues
from pulumi_hosting.session.errors import ResourceError, WaitTimeout, and_then

WORDS = replace(
    COMMAND_LINE,
    read="pulumi refresh",
    apply="pulumi up",
    read_and_apply="pulumi up --refresh",
    remove="pulumi destroy",
    api_key="HOSTING_API_KEY or hosting:apiKey",
    key_setting="hosting:apiKey (refresh and destroy see a new one with --run-program)",
    base_url="HOSTING_BASE_URL or hosting:baseUrl",
    rate_limit_timeout="hosting:rateLimitTimeout",
    forget="pulumi state delete 'URN' (pulumi stack export names it)",
)
"""What advice names to the person who runs Pulumi."""


class StepFailed(Exception):
    """What a person reads when a step fails: one line."""


# The SDK prints the name of the class, with its module's path, before the line: here that of the provider.
StepFailed.__module__, StepFailed.__qualname__ = builtins.__name__, NAME


@contextmanager
def as_user_error(*passing: type[Exception]) -> Iterator[None]:
    """What goes wrong within becomes :class:`StepFailed`, without the values of any variable. ``passing``
    errors stay what they are.
    """
    kept: tuple[type[Exception], ...] = (StepFailed, *passing)
    try:
        yield
    except kept:
        raise
    except HostingError as error:
        error._words = WORDS
        fail(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001  # a traceback would carry the values of variables, secrets among them
        fail(defect(error))


def defect(error: Exception) -> str:
    return f"the provider failed ({type(error).__name__}): a defect of pulumi-hosting. Next: report it"


def check_failure(name: str, reason: str) -> str:
    """What a person reads of an input that is refused. ``name``: as the person's language spells it. It goes
    into the reason: a failure that names its property is printed with the property's value, secret or not.
    """
    return with_next_step(f"{name}: {reason}", [name]) if name else reason


def fail(message: str) -> NoReturn:
    """Raise :class:`StepFailed`; the error that is being handled, if any, is not shown."""
    raise StepFailed(message) from None


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
    return ResourceError(f"{parted(str(error))[0]}. {_NEXT}")


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
    return ResourceError(f"{parted(reasons)[0]}; {what} is paid and in no state. {step}")
