"""Which declarations use an SSH key: notes in a private file, shared by the runs of one user on this machine.

The API does not show which servers a key was installed on, and a key carries no text. So a stack that added a
key cannot know who else declares it. The notes are a help only: without them (another machine) a key is
deleted by the stack that added it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.local_files import Scope
from pulumi_hosting.session.request import Request

_PURPOSE = "users of SSH keys"


def record(request: Request, keys: Mapping[str, str | None]) -> None:
    """The declaration uses these keys: id → when the key was added to the account."""
    if keys and not request.client.is_test_key:
        with suppress(local_files.LocalFilesError), _changed(request) as notes:
            for id, added in keys.items():
                notes[id] = {"added": added, "users": sorted({*_users(notes, id, added), request.identity})}


def forget(request: Request, id: str) -> None:
    """The object of the declaration with this id is gone. With it goes the use of its keys, unless a
    replacement has taken its place."""
    if any(other.isdigit() for other in request.ownership.of(request.identity) - {id}):
        return
    if any(request.identity in note["users"] for note in _read(request).values()):
        with suppress(local_files.LocalFilesError), _changed(request) as notes:
            for id, note in [*notes.items()]:
                note["users"] = [user for user in note["users"] if user != request.identity]
                if not note["users"]:
                    del notes[id]


def of_other_stacks(request: Request, id: str, added: str | None) -> list[str]:
    """The identities of declarations that use the key, but those of this stack: what it removes or replaces
    is for its engine to decide."""
    users, stack = _users(_read(request), id, added), request.identity.split("/")[:2]
    return [user for user in users if user.split("/")[:2] != stack]


def _users(notes: dict[str, Any], id: str, added: str | None) -> list[str]:
    """As noted; none if the number was another key's: numbers begin again when an emulator is reset."""
    note = notes.get(id)
    return note["users"] if note is not None and note["added"] == added else []


def _read(request: Request) -> dict[str, Any]:
    if request.client.is_test_key:
        return {}
    try:
        return dict(local_files.read(_scope(request), _PURPOSE, survives=False).get("keys", {}))
    except local_files.LocalFilesError:
        return {}


def _scope(request: Request) -> Scope:
    """Always of this machine: the notes name stacks, and with them people, perhaps."""
    return Scope(local_files.account_scope(request.client))


@contextmanager
def _changed(request: Request) -> Iterator[dict[str, Any]]:
    with local_files.changing(_scope(request), _PURPOSE, survives=False) as note:
        note["version"] = 1
        yield note.setdefault("keys", {})
