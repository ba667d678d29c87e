"""Every resource once, with the native provider. The programs in the other forms and languages are generated
from this one.

pulumi-hosting plugin install
pulumi config set domain example.com
pulumi config set tariff 1
pulumi config set publicKey "$(cat ~/.ssh/id_ed25519.pub)"
export HOSTING_API_KEY=vk_live_… HOSTING_BASE_URL=https://api.example.org/v1
pulumi up
"""

import pulumi

from pulumi_hosting import native as hosting

config = pulumi.Config()
domain = config.require("domain")

# A lookup: asked in every run, previews included. `pulumi-hosting emulator` sells tariff 1.
price = hosting.get_tariff(config.require_int("tariff"))

key = hosting.SshKey("deploy", public_key=config.require("publicKey"))

server = hosting.Server(
    "web",
    tariff_id=price.id,
    os="debian-12",
    months=1,
    ssh_key_ids=[key.id],
    notes="the shop",
    auto_renew=True,
)

# One more address, and the name each of the two resolves to; without an address, the primary one is meant.
mail = hosting.ServerIp("mail", server=server)
hosting.Ptr("www-ptr", server=server, domain=f"www.{domain}")
hosting.Ptr("mail-ptr", server=server, address=mail.address, domain=f"mail.{domain}")

# A domain cannot be deleted: destroying it turns auto-renew off and forgets it.
name = hosting.Domain(
    "shop",
    name=domain,
    years=1,
    nameservers=[f"ns1.{domain}", f"ns2.{domain}"],
    privacy=True,
    auto_renew=True,
)

hook = hosting.WebhookSubscription(
    "news", url=f"https://hooks.{domain}/hosting", events=["server.suspended", "domain.renewed"]
)

pulumi.export("addresses", [server.ip, mail.address])
pulumi.export("next_due_at", server.next_due_at)
pulumi.export("root_password", server.root_password)
pulumi.export("domain_expires_at", name.expires_at)
pulumi.export("webhook_secret", hook.secret)
pulumi.export("price_monthly", f"{price.price_monthly} {price.currency}")
