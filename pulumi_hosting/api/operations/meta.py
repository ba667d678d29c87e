"""The API itself and the calling key (API document, "Meta")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {"meta": 'The API itself and the calling key (API document, "Meta").'}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "get_health", "GET /health", "health", "Whether the API is switched on", {200: m.Health}, auth=False
    ),
    Operation(
        "get_openapi", "GET /openapi.json", "openapi", "This API as OpenAPI 3.1", {200: dict}, auth=False
    ),
    Operation("get_me", "GET /me", "me", "The calling key, its scopes and account", {200: m.Me}),
)
