"""What the tests of responses share."""

import json
from typing import Any

import httpx

from pulumi_hosting.api.operations import OPERATIONS
from tests.client.support import scripted
from tests.client.test_retries import call

SERVER: dict[str, Any] = {"id": 1, "name": "a", "status": "active"}


def read(operation_id: str, body: Any, status: int = 200, **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    client, _ = scripted(
        httpx.Response(status, content=content, headers={"Content-Type": "application/json", **headers})
    )
    operation = next(row for row in OPERATIONS if row.id == operation_id)
    return call(client, operation)
