"""An SSH key that servers can install."""

import pulumi

from pulumi_hosting import native as hosting

config = pulumi.Config()

key = hosting.SshKey("deploy", public_key=config.require("publicKey"))

pulumi.export("fingerprint", key.fingerprint)
