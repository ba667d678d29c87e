"""An SSH key and a server that carries it."""

import pulumi

from pulumi_hosting import Server, SshKey

key = SshKey("laptop", public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE laptop")

web = Server(
    "web-1",
    tariff_id=1,
    os="debian-12",
    ssh_key_ids=[key.id],
    notes="front end of the demo",
    auto_renew=True,
)

pulumi.export("ip", web.ip)
pulumi.export("next_due_at", web.next_due_at)
pulumi.export("root_password", web.root_password)
