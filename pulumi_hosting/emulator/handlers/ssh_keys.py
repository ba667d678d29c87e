"""Public keys of the account."""

from pulumi_hosting.api.values import fingerprint
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer, Refusal
from pulumi_hosting.emulator.rows import SshKeyRow


def list_ssh_keys(call: Call) -> Answer:
    return call.listing(call.store.of(SshKeyRow, call.account.id).values())


def create_ssh_key(call: Call) -> Answer:
    """The text is stored without surrounding space; two keys are equal if their type and material are."""
    text = call.body.public_key.strip()
    mark = fingerprint(text)
    known = any(row.fingerprint == mark for row in call.store.of(SshKeyRow, call.account.id).values())
    if known and call.store.service.readings["duplicate_ssh_key"] == "conflict":
        raise Refusal("conflict", "this public key is already on the account")
    key = SshKeyRow(
        id=9_000_000_000 + call.store.count("id:fake") if call.simulated else 0,
        account_id=call.account.id,
        name=call.body.name,
        type=text.split()[0],
        public_key=text,
        fingerprint=mark,
        created_at=call.now,
    )
    return Answer(201, call.view(call.add(key)))


def delete_ssh_key(call: Call) -> Answer:
    key = call.own(SshKeyRow, call.ids["key_id"])
    if not call.simulated:
        call.store.remove(key)
    return Answer(204)
