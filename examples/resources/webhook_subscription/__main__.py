"""News of servers and domains, delivered to an address of yours."""

import pulumi

from pulumi_hosting import native as hosting

hook = hosting.WebhookSubscription(
    "news",
    url="https://hooks.example.com/hosting",
    events=["server.suspended", "domain.renewed"],
    description="on-call",
)

pulumi.export("active", hook.active)
