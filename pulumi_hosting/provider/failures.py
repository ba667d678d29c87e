"""What goes wrong, as the person who waits for Pulumi reads it: one line, and no values of variables."""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from pulumi_hosting.client.call_errors import with_next_step
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.provider.names import NAME


class Failed(Exception):
    """What a person reads when a step fails: one line."""


# The SDK prints the name of the class, with its module's path, before the line: here that of the provider.
Failed.__module__, Failed.__qualname__ = builtins.__name__, NAME


@contextmanager
def as_user_error(*passing: type[Exception]) -> Iterator[None]:
    """What goes wrong within becomes :class:`Failed`, without the values of any variable. ``passing``
    errors stay what they are.
    """
    kept: tuple[type[Exception], ...] = (Failed, *passing)
    try:
        yield
    except kept:
        raise
    except HostingError as error:
        fail(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001  # a traceback would carry the values of variables, secrets among them
        fail(
            f"the provider failed ({type(error).__name__}): a defect of pulumi-hosting. Next: report it, "
            f"with what led here"
        )


def check_failure(name: str, reason: str) -> str:
    """What a person reads of an input that is refused. ``name``: as the person's language spells it. It goes
    into the reason: a failure that names its property is printed with the property's value, secret or not.
    """
    return with_next_step(f"{name}: {reason}", [name]) if name else reason


def fail(message: str) -> NoReturn:
    """Raise :class:`Failed`; the error that is being handled, if any, is not shown."""
    raise Failed(message) from None
