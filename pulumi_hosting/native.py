"""Form two: the resources of the plugin ``pulumi-resource-hosting``, and every read of the API asked by it.

    from pulumi_hosting import native as hosting

    account = hosting.Provider("second", api_key=config.require_secret("secondKey"))
    web = hosting.Server("web", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=account))

Names and arguments are those of form one, and a stack that form one wrote is taken over by changing the import.
``pulumi-hosting plugin install`` puts the plugin where Pulumi looks for it.
"""

from pulumi_hosting.provider.native import *  # noqa: F403  the generated module says in __all__ what it offers
from pulumi_hosting.provider.native import __all__ as __all__
