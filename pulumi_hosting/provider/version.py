"""The version of this package, as Pulumi spells it."""

import re
from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The version in Pulumi's spelling, read once: every resource of a program names it.

    >>> re.fullmatch(r"[0-9]+[.][0-9]+[.][0-9]+(-[a-z]+[.][0-9]+)?", version()) is not None
    True
    """
    return semantic(metadata.version("pulumi-hosting"))


def semantic(version: str) -> str:
    """Python's spelling of a version as Pulumi reads it.

    >>> semantic("1.2.0"), semantic("1.2.0rc1"), semantic("1.2.0.dev3")
    ('1.2.0', '1.2.0-rc.1', '1.2.0-dev.3')
    """
    return re.sub(r"^([0-9]+\.[0-9]+\.[0-9]+)\.?([a-z]+)([0-9]+).*$", r"\1-\2.\3", version)
