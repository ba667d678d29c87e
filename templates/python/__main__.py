"""A server and its SSH key."""

import pulumi
import pulumi_hosting_sdk as hosting

config = pulumi.Config()
deploy = hosting.SshKey("deploy", public_key=config.require("publicKey"))
web = hosting.Server(
    "web",
    tariff_id=config.require_int("tariff"),
    os="debian-12",
    months=1,
    ssh_key_ids=[deploy.id],
)

pulumi.export("address", web.ip)
