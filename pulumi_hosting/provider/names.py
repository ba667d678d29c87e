"""What things are called on Pulumi's side. Loads nothing, since every program of a user loads it."""

from collections.abc import Mapping
from typing import Any

from pulumi_hosting.api.casing import camel as camel

Props = dict[str, Any]
"""Property values of a resource by their names: the wire's, or a resource's own."""
PropertyValues = Mapping[str, Any]
"""The same, to read only."""

NAME = "hosting"

IDENTITY = "__identity"
"""Input and output: what names the declaration for ever; keys and the ownership tag are derived from it."""

DECLARED = "__declared"
"""Input and output of dynamic resources: the identity that the program declares, if it is not the recorded
one: an alias renamed the resource. (A native one is named by its URN.)"""

TIMEOUTS = "__timeouts"
"""Input of dynamic resources: the program's option ``custom_timeouts``, in seconds by step."""

APPLIES = "__applies"
"""Input of dynamic resources in an update, none in a preview: providers are not told which of the two it is.
No check hands it on."""

MANAGED = "__managed"
"""Output: the inputs the program gives, so that a refresh compares those and no others."""

ACCOUNT = "__account"
"""Output: the account the object is on, so that another account's silence is never taken for its end."""

ENTRY = "__entry"
"""Output: which entry of the stack's state this is, to tell two that name one object apart."""

SEVERAL: Mapping[str, str] = {"tariff": "tariffs", "tariff_id": "tariff_ids"}
"""Inputs that take one value or several, and what a list of them is called on the wire. The output of the
first name is the one that was taken; engines and SDKs that know no output show the input of its name."""

UNNAMED = "__unnamed"
"""Input of a program in Python: it gives no name, and ``name`` is the default one. Never recorded."""

SERVER = "__server"
"""Input of what is declared with ``server``: what tells that server's declaration from the others, its URN or
the identity that it declares. It is not recorded."""

WAIT_TIMEOUT = "waitTimeout"

ORGANIZATION = "__organization"
"""Input: the organization that the stack is in, if the backend has any."""


def class_of(kind: str) -> str:
    """``ssh_key`` → ``SshKey``."""
    return "".join(map(str.capitalize, kind.split("_")))


def token(name: str) -> str:
    """``Server`` → ``hosting:index:Server``."""
    return f"{NAME}:index:{name}"


def dynamic_token(kind: str) -> str:
    """The type of the same resource as a dynamic resource; the native provider takes its stacks over."""
    return f"pulumi-python:dynamic/{NAME}:{class_of(kind)}"


def identity_of(urn: str, kind: str) -> str:
    """What names a resource without scope and organization: the same as for a dynamic resource, if it has no
    parent.

    >>> identity_of("urn:pulumi:dev::shop::hosting:index:Server::web", "server")
    'pulumi:shop/dev/server/web'
    """
    stack, project, types, name = urn.removeprefix("urn:pulumi:").split("::", 3)
    parents = types.rpartition("$")[0]
    return f"pulumi:{project}/{stack}/{kind}/{f'{parents}/' if parents else ''}{name}"
