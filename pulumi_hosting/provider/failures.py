"""What goes wrong, as the person who waits for Pulumi reads it: one line, and no values of variables."""

import builtins
from collections.abc import Callable
from typing import NoReturn, TypeVar

from pulumi_hosting.client.exceptions import HostingError

T = TypeVar("T")


class Failed(Exception):
    """What a person reads when a step fails: one line."""


Failed.__module__ = builtins.__name__  # printed without a module path before it


def plainly(step: Callable[[], T], passing: tuple[type[Exception], ...] = ()) -> T:
    """Run a step; what goes wrong becomes :class:`Failed`, without the values of any variable. ``passing`` errors stay what they are."""
    try:
        return step()
    except Failed:
        raise
    except passing:
        raise
    except HostingError as error:
        message = " ".join(str(error).split())
    except Exception as error:  # noqa: BLE001  # a traceback would carry the values of variables, secrets among them
        message = f"the provider failed ({type(error).__name__}): a defect of pulumi-hosting. Next: report it, with what led here"
    fail(message)


def fail(message: str) -> NoReturn:
    raise Failed(message) from None
