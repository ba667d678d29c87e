"""The resources of the native provider, the plugin ``pulumi-resource-hosting``, and every lookup asked by it.

    from pulumi_hosting import native as hosting

    account = hosting.Provider("second", api_key=config.require_secret("secondKey"))
    web = hosting.Server("web", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=account))

Names and arguments are those of the dynamic resources in ``pulumi_hosting``. To move a stack from those to
the plugin, change the import. ``pulumi-hosting plugin install`` puts the plugin where Pulumi looks for it.
``native.pyi`` lists the names for type checkers.
"""

from typing import Any

from pulumi_hosting import load
from pulumi_hosting.provider.sdk.exports import NATIVE


def __getattr__(name: str) -> Any:
    return load(name, __name__, NATIVE, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *NATIVE})
