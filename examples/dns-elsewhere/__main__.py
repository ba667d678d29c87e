"""A server and a domain, with the DNS records at another provider: Hetzner here. Others work the same way.

The zone has the name servers, the domain is registered with them, and the records point to the server.
"""

import pulumi
import pulumi_hcloud as hcloud

import pulumi_hosting as hosting

name = pulumi.Config().require("domain")

web = hosting.Server("web", tariff="VDS-1", os="debian-12", auto_renew=True)

zone = hcloud.Zone("shop", name=name, mode="primary", ttl=3600)
name_servers = zone.authoritative_nameservers.apply(lambda found: list(found.assigneds or ()))
domain = hosting.Domain("shop", name=name, nameservers=name_servers, auto_renew=True)

hcloud.ZoneRrset("address", zone=zone.name, name="@", type="A", records=[{"value": web.ip.apply(str)}])
hcloud.ZoneRrset("www", zone=zone.name, name="www", type="CNAME", records=[{"value": f"{name}."}])
hosting.Ptr("web", server=web, domain=name)

pulumi.export("ip", web.ip)
pulumi.export("name_servers", domain.nameservers)
