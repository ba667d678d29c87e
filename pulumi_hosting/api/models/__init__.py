"""Every body of the API as a pydantic model (API document, "Resources and their fields" and "Endpoints").

Requests are closed: an unknown field, a bad value or a bad combination is refused before anything is sent.
"Not given" and ``None`` are two things: only fields that were set are sent. Responses are open: unknown
fields, enum values and codes survive; where a live deployment spells a field differently than the document,
both spellings become one attribute. Money is ``Decimal``, time is aware UTC, fields shown only once are
:class:`~pulumi_hosting.api.secrets.Secret`.

An area is loaded when one of its models is first used: a program that reads its servers does not wait for the
models of domains.
"""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulumi_hosting.api.models.account import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.addresses import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.body import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.catalog import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.domains import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.field_types import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.invoices import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.refunds import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.servers import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.ssh_keys import *  # noqa: F403  # the bodies of this area
    from pulumi_hosting.api.models.webhooks import *  # noqa: F403  # the bodies of this area

AREAS = (
    "field_types",
    "body",
    "account",
    "servers",
    "addresses",
    "refunds",
    "invoices",
    "catalog",
    "ssh_keys",
    "domains",
    "webhooks",
)
"""The modules of this package, those that nearly every program needs first."""


def __getattr__(name: str) -> Any:
    for area in areas():
        if name in vars(area) and not name.startswith("_"):
            return globals().setdefault(name, vars(area)[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def areas() -> Iterator[ModuleType]:
    """The modules with the models, each loaded when it is asked for."""
    return (import_module(f"{__name__}.{name}") for name in AREAS)
