"""A site in three tiers: a load balancer, application servers behind it, a database.

pulumi config set domain example.com
pulumi config set publicKey "$(cat ~/.ssh/id_ed25519.pub)"
export HOSTING_API_KEY=vk_live_… HOSTING_BASE_URL=https://api.example.org/v1
pulumi up
"""

import pulumi

import pulumi_hosting as hosting

config = pulumi.Config()
domain = config.require("domain")
app_servers = config.get_int("appServers") or 2

SMALL, LARGE = 1, 2  # tariffs, as `pulumi-hosting emulator` sells them

deploy = hosting.SshKey("deploy", public_key=config.require("publicKey"))


def server(name: str, tariff_id: int) -> hosting.Server:
    """A server of one tier. All have the same image and the same key."""
    return hosting.Server(
        name, tariff_id=tariff_id, os="debian-12", ssh_key_ids=[deploy.id], notes=name.partition("-")[0]
    )


balancer = server("balancer", SMALL)
apps = [server(f"app-{number}", LARGE) for number in range(1, app_servers + 1)]
database = server("database", LARGE)

# A second address for mail, so that the reputation of the site's own address does not depend on it.
mail = hosting.ServerIp("mail", server=balancer)
hosting.Ptr("www-ptr", server=balancer, domain=f"www.{domain}")
hosting.Ptr("mail-ptr", server=balancer, address=mail.address, domain=f"mail.{domain}")

hosting.Domain(
    "site", name=domain, nameservers=[f"ns1.{domain}", f"ns2.{domain}"], privacy=True, auto_renew=True
)
hosting.WebhookSubscription(
    "incidents", url=f"https://hooks.{domain}/hosting", events=["server.suspended", "balance.low"]
)

pulumi.export("balancer", balancer.ip)
pulumi.export("mail", mail.address)
pulumi.export("apps", [app.ip for app in apps])
pulumi.export("database", database.ip)
