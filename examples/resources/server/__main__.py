"""A server that installs an SSH key."""

import pulumi

from pulumi_hosting import native as hosting

config = pulumi.Config()

key = hosting.SshKey("deploy", public_key=config.require("publicKey"))
server = hosting.Server(
    "web",
    tariff_id=1,
    os="debian-12",
    months=1,
    ssh_key_ids=[key.id],
    notes="front end",
    auto_renew=True,
)

pulumi.export("ip", server.ip)
