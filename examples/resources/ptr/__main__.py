"""The reverse DNS of a server's primary address."""

import pulumi

from pulumi_hosting import native as hosting

config = pulumi.Config()
domain = config.require("domain")

server = hosting.Server("web", tariff_id=1, os="debian-12")
# Without an address, the primary one is meant.
record = hosting.Ptr("web-ptr", server=server, domain=f"www.{domain}")

pulumi.export("resolves_to", record.domain)
