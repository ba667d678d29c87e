"""SSH keys of the account (API document, "SSH keys")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {
    "ssh_keys": (
        'Public SSH keys of the account (API document, "SSH keys"). No operation reads or changes a '
        "single key."
    )
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_ssh_keys",
        "GET /ssh-keys",
        "ssh_keys.list",
        "Public keys of the account",
        {200: m.Listing[m.SshKey]},
        ("servers:read",),
    ),
    Operation(
        "create_ssh_key",
        "POST /ssh-keys",
        "ssh_keys.create",
        "Add a public key",
        {201: m.SshKey},
        ("servers:manage",),
        request=m.SshKeyCreate,
        codes=("conflict",),
        description="Some deployments refuse a key that is there already with ``Conflict``.",
    ),
    Operation(
        "delete_ssh_key",
        "DELETE /ssh-keys/{key_id}",
        "ssh_keys.delete",
        "Remove a public key; servers that carry it keep it",
        {204: None},
        ("servers:manage",),
    ),
)
