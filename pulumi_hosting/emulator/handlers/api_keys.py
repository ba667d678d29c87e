"""API keys: list, read, revoke."""

from pulumi_hosting.emulator import events
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rows import KeyRow


def list_api_keys(call: Call) -> Answer:
    return call.listing(call.store.of(KeyRow, call.account.id).values(), next_cursor=None)


def get_api_key(call: Call) -> Answer:
    return Answer(200, call.view(call.own(KeyRow, call.ids["key_id"])))


def revoke_api_key(call: Call) -> Answer:
    """Only the calling key can be revoked; for a key that is revoked already the answer is ``conflict``."""
    key = call.own(KeyRow, call.ids["key_id"])
    if key.revoked_at is not None:
        raise Refusal("conflict", "the key is already revoked")
    if key.id != call.key.id:
        raise Refusal("insufficient_scope", details={"required": ["self"]})
    key.revoked_at, key.revoked_reason = call.now, "revoked via API"
    events.of(call.store, "key.revoked", key)
    return Answer(200, {"status": "revoked", "key": call.view(key)})
