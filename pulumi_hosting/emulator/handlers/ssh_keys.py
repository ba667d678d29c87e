"""Public keys of the account."""

import base64
from hashlib import sha256

from pulumi_hosting.emulator import views
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.wire import Answer, Refusal, invalid
from pulumi_hosting.emulator.world import SshKey


def list_ssh_keys(call: Call) -> Answer:
    return Answer(200, {"data": [views.ssh_key(row) for row in call.world.of(SshKey, call.account.id).values()]})


def create_ssh_key(call: Call) -> Answer:
    """The text is kept as given, without surrounding space; two keys are the same when their type and material are."""
    text = call.body.public_key.strip()
    type, material = text.split()[:2]
    try:
        raw = base64.b64decode(material, validate=True)
    except ValueError as error:
        raise invalid(public_key="invalid") from error
    if not raw.startswith(len(type).to_bytes(4, "big") + type.encode()):
        raise invalid(public_key="invalid")
    fingerprint = "SHA256:" + base64.b64encode(sha256(raw).digest()).decode().rstrip("=")
    known = any(row.fingerprint == fingerprint for row in call.world.of(SshKey, call.account.id).values())
    if known and call.world.service.readings["duplicate_ssh_key"] == "conflict":
        raise Refusal("conflict", "this public key is on the account already")
    key = call.world.make(
        SshKey,
        id=9_000_000_000 + call.world.count("id:fake") if call.fake else None,
        account_id=call.account.id,
        name=call.body.name,
        type=type,
        public_key=text,
        fingerprint=fingerprint,
        created_at=call.now,
    )
    return Answer(201, views.ssh_key(call.keep(key)))


def delete_ssh_key(call: Call) -> Answer:
    key = call.own(SshKey, call.ids["key_id"])
    if not call.fake:
        call.world.remove(key)
    return Answer(204)
