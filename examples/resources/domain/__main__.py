"""A domain with its name servers."""

import pulumi

from pulumi_hosting import native as hosting

config = pulumi.Config()

shop = hosting.Domain(
    "shop",
    name=config.require("domain"),
    years=1,
    nameservers=["ns1.example.net", "ns2.example.net"],
    privacy=True,
    auto_renew=True,
)

pulumi.export("expires_at", shop.expires_at)
