"""API keys of the account (API document, "API keys")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {
    "keys": 'API keys of the account (API document, "API keys"). They are created in the control panel only.'
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_api_keys",
        "GET /keys",
        "keys.list",
        "API keys of the account",
        {200: m.Listing[m.ApiKey]},
        ("keys:read",),
        description="The text of a key is never shown.",
    ),
    Operation(
        "get_api_key", "GET /keys/{key_id}", "keys.get", "One API key", {200: m.ApiKey}, ("keys:read",)
    ),
    Operation(
        "revoke_api_key",
        "DELETE /keys/{key_id}",
        "keys.revoke",
        "Revoke the calling key; needs no scope",
        {200: m.ApiKeyRevoked, 204: None},
        sandbox_mode="real",
        codes=("conflict",),
        description="Only the key that makes the call can be revoked (``client.me().key.id``), test keys "
        "too. Another key raises ``InsufficientScope``, a revoked one ``Conflict``.",
    ),
)
