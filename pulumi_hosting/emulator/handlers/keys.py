"""API keys: listing, and revoking the one that calls."""

from pulumi_hosting.emulator import events, views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.wire import Answer, Refusal
from pulumi_hosting.emulator.world import Key


def list_api_keys(call: Call) -> Answer:
    return Answer(200, {"data": [views.key(row) for row in call.world.of(Key, call.account.id).values()], "next_cursor": None})


def get_api_key(call: Call) -> Answer:
    return Answer(200, views.key(call.own(Key, call.ids["key_id"])))


def revoke_api_key(call: Call) -> Answer:
    """The calling key and no other; another key of the account that is revoked already is a conflict, any other is out of reach."""
    key = call.own(Key, call.ids["key_id"])
    if key.revoked_at is not None:
        raise Refusal("conflict", "the key is revoked already")
    if key.id != call.key.id:
        raise Refusal("insufficient_scope", details={"required": ["self"]})
    key.revoked_at, key.revoked_reason = call.now, "revoked by itself"
    events.of_key(call.world, "key.revoked", key, call.now)
    return Answer(200, {"status": "revoked", "key": views.key(key)})
