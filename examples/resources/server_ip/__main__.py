"""A server with one more IPv4 address."""

import pulumi

from pulumi_hosting import native as hosting

server = hosting.Server("web", tariff_id=1, os="debian-12")
# It is bought for the server, and goes with it.
mail = hosting.ServerIp("mail", server=server)

pulumi.export("address", mail.address)
