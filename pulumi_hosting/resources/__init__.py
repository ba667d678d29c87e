"""What a user declares: one file per resource, one engine over all of them (``base`` holds the contract, ``engine`` the reasoning)."""

from collections.abc import Mapping
from typing import Any

from pulumi_hosting.resources.base import Resource
from pulumi_hosting.resources.domain import DOMAIN
from pulumi_hosting.resources.ptr import PTR
from pulumi_hosting.resources.server_ip import SERVER_IP
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.ssh_key import SSH_KEY
from pulumi_hosting.resources.webhook_subscription import WEBHOOK_SUBSCRIPTION

RESOURCES: Mapping[str, Resource[Any, Any]] = {
    resource.kind: resource for resource in (SERVER, DOMAIN, SSH_KEY, SERVER_IP, PTR, WEBHOOK_SUBSCRIPTION)
}
"""Every resource by its kind; both frontends enumerate this, so a new resource cannot be forgotten by either."""
