"""API keys: list, read, revoke."""

from pulumi_hosting.emulator import events, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import ApiError, Response
from pulumi_hosting.emulator.rows import Key


def list_api_keys(call: Call) -> Response:
    return Response(
        200,
        {
            "data": [serializers.key(row) for row in call.store.of(Key, call.account.id).values()],
            "next_cursor": None,
        },
    )


def get_api_key(call: Call) -> Response:
    return Response(200, serializers.key(call.own(Key, call.ids["key_id"])))


def revoke_api_key(call: Call) -> Response:
    """Only the calling key can be revoked; for a key that is revoked already the answer is ``conflict``."""
    key = call.own(Key, call.ids["key_id"])
    if key.revoked_at is not None:
        raise ApiError("conflict", "the key is already revoked")
    if key.id != call.key.id:
        raise ApiError("insufficient_scope", details={"required": ["self"]})
    key.revoked_at, key.revoked_reason = call.now, "revoked via API"
    events.of_key(call.store, "key.revoked", key, call.now)
    return Response(200, {"status": "revoked", "key": serializers.key(key)})
