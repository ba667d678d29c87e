"""API keys: listing, and revoking the one that calls."""

from pulumi_hosting.emulator import events, serializers
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import ApiError, Response
from pulumi_hosting.emulator.rows import Key


def list_api_keys(call: Call) -> Response:
    return Response(200, {"data": [serializers.key(row) for row in call.store.of(Key, call.account.id).values()], "next_cursor": None})


def get_api_key(call: Call) -> Response:
    return Response(200, serializers.key(call.own(Key, call.ids["key_id"])))


def revoke_api_key(call: Call) -> Response:
    """The calling key and no other; another key of the account that is revoked already is a conflict, any other is out of reach."""
    key = call.own(Key, call.ids["key_id"])
    if key.revoked_at is not None:
        raise ApiError("conflict", "the key is revoked already")
    if key.id != call.key.id:
        raise ApiError("insufficient_scope", details={"required": ["self"]})
    key.revoked_at, key.revoked_reason = call.now, "revoked by itself"
    events.of_key(call.store, "key.revoked", key, call.now)
    return Response(200, {"status": "revoked", "key": serializers.key(key)})
