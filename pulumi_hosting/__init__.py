"""Infrastructure as code for hosting companies that speak the Hosting Client API v1.

    from pulumi_hosting import Client

    with Client() as client:        # HOSTING_API_KEY, HOSTING_BASE_URL
        print(client.me().scopes)

Importing this package loads nothing else: a name below is loaded when it is first used.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulumi_hosting.api.client import Client as Client
    from pulumi_hosting.api.errors import ApiError as ApiError
    from pulumi_hosting.api.errors import ConfigurationError as ConfigurationError
    from pulumi_hosting.api.errors import HostingError as HostingError
    from pulumi_hosting.api.errors import InvalidInput as InvalidInput
    from pulumi_hosting.api.errors import InvalidResponse as InvalidResponse
    from pulumi_hosting.api.errors import TransportError as TransportError
    from pulumi_hosting.api.errors import WebhookRejected as WebhookRejected
    from pulumi_hosting.api.errors import WriteRefused as WriteRefused
    from pulumi_hosting.api.redact import Secret as Secret
    from pulumi_hosting.api.results import UNSET as UNSET
    from pulumi_hosting.provider.classes import Server as Server
    from pulumi_hosting.provider.classes import SshKey as SshKey

# Name → module that has it. Each name stands above too, for type checkers.
_HOMES = {
    "Client": "pulumi_hosting.api.client",
    "ApiError": "pulumi_hosting.api.errors",
    "ConfigurationError": "pulumi_hosting.api.errors",
    "HostingError": "pulumi_hosting.api.errors",
    "InvalidInput": "pulumi_hosting.api.errors",
    "InvalidResponse": "pulumi_hosting.api.errors",
    "TransportError": "pulumi_hosting.api.errors",
    "WebhookRejected": "pulumi_hosting.api.errors",
    "WriteRefused": "pulumi_hosting.api.errors",
    "Secret": "pulumi_hosting.api.redact",
    "UNSET": "pulumi_hosting.api.results",
    "Server": "pulumi_hosting.provider.classes",
    "SshKey": "pulumi_hosting.provider.classes",
}

__all__ = [*_HOMES]  # names of strings, made from the one list


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("pulumi-hosting")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pulumi":
            raise
        raise ImportError(f"{name} needs Pulumi's SDK. Next: pip install 'pulumi-hosting[pulumi]'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
