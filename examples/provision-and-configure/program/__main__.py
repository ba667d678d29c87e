"""The machines. What runs on them is Ansible's part: `configure.yml`, over the inventory of the account."""

import pulumi

import pulumi_hosting as hosting

config = pulumi.Config()
deploy = hosting.SshKey("deploy", public_key=config.require("publicKey"))

for name, tariff_id in (("balancer", 1), ("app-1", 2), ("app-2", 2), ("database", 2)):
    # The inventory groups hosts by their names.
    server = hosting.Server(name, tariff_id=tariff_id, os="debian-12", ssh_key_ids=[deploy.id])
    pulumi.export(name, server.ip)
