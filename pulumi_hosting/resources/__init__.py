"""What a user declares: one file per resource, its optional powers beside it. ``base`` holds the contract."""

from collections.abc import Mapping
from typing import Any

from pulumi_hosting.resources.base import Resource
from pulumi_hosting.resources.domain_powers import DOMAIN
from pulumi_hosting.resources.ptr import PTR
from pulumi_hosting.resources.server_ip_powers import SERVER_IP
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.ssh_key import SSH_KEY
from pulumi_hosting.resources.webhook_subscription_powers import WEBHOOK_SUBSCRIPTION

RESOURCES: Mapping[str, Resource[Any, Any]] = {
    resource.kind: resource for resource in (SERVER, DOMAIN, SSH_KEY, SERVER_IP, PTR, WEBHOOK_SUBSCRIPTION)
}
"""Every resource by its kind; both frontends enumerate this, so a new resource cannot be forgotten by
either.
"""
