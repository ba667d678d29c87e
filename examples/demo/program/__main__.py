"""A small shop: a server with its key, a domain, one more address for mail, reverse DNS, and a webhook
that tells what happens.
"""

import pulumi

from pulumi_hosting import Domain, Ptr, Server, ServerIp, SshKey, WebhookSubscription

DOMAIN = "demo-shop.com"

key = SshKey(
    "laptop",
    public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE laptop",
)

web = Server(
    "web-1",
    tariff_id=1,
    os="debian-12",
    ssh_key_ids=[key.id],
    notes="front end of the demo",
    auto_renew=True,
    power="running",
)

shop = Domain(
    "shop", name=DOMAIN, nameservers=[f"ns1.{DOMAIN}", f"ns2.{DOMAIN}"], privacy=True, auto_renew=True
)

mail = ServerIp("mail", server=web)

# Without an address, the primary one of the server is meant.
Ptr("web-ptr", server=web, domain=f"www.{DOMAIN}")
Ptr("mail-ptr", server=web, address=mail.address, domain=f"mail.{DOMAIN}")

news = WebhookSubscription(
    "news",
    url=f"https://hooks.{DOMAIN}/hosting",
    events=["server.suspended", "domain.renewed"],
    description="what operations must know",
)

pulumi.export("addresses", [web.ip, mail.address])
pulumi.export("next_due_at", web.next_due_at)
pulumi.export("domain_expires_at", shop.expires_at)
pulumi.export("root_password", web.root_password)
pulumi.export("webhook_secret", news.secret)
