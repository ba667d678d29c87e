"""An SSH public key of the account (API document, "SSH keys").

Found by its fingerprint and never doubled: the API has neither an idempotency key nor a guard for it, so creation looks first and, when
an answer was lost, looks again. It cannot be changed in place; a new name or key is a new object, and the old one goes first.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.errors import ApiError, NotFound, TransportError
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import REPLACES, Ambiguous, Context, Foreign, NounError, Trait, as_text


def _normal_form(text: str) -> str:
    """One line, single spaces: ``type base64 comment``."""
    words = text.split()
    if "\n" in text.strip() or "\r" in text.strip():
        raise ValueError("must be one OpenSSH public key line")
    if len(words) < 2 or words[0] not in m.KEY_TYPES:
        # A private key pasted by mistake ends up here; its text must not be repeated.
        raise ValueError(f"must be one OpenSSH public key line that begins with one of {', '.join(m.KEY_TYPES)}")
    try:
        base64.b64decode(words[1], validate=True)
    except binascii.Error:
        raise ValueError("the key's second word is not base64: the line is damaged") from None
    return " ".join(words)


def fingerprint(public_key: str) -> str:
    """The ``SHA256:`` form, as ``ssh-keygen -l`` prints it. Comment and spacing do not count."""
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def material(public_key: str) -> str:
    """The part that is the key: type and base64, without the comment."""
    return " ".join(public_key.split()[:2])


class SshKeyInputs(base.Inputs):
    name: Annotated[str, Field(min_length=1, max_length=255, description="Name shown in the account. A change makes a new key."), REPLACES]
    public_key: Annotated[
        str,
        AfterValidator(_normal_form),
        Field(
            max_length=16384,
            description="One OpenSSH public key line, `type base64 comment`; the comment is no part of it. A change makes a new key.",
        ),
        Trait(replaces=True, normal=material),
    ]


class SshKeyState(base.State):
    name: str = Field(description="Name shown in the account.")
    public_key: str = Field(description="The public key line, as declared where the account holds the same key.")
    fingerprint: str = Field(description="Fingerprint in the SHA256 form.")
    type: str = Field(description="Key type, for example ssh-ed25519.")
    created_at: str | None = Field(default=None, description="When it was added (RFC 3339, UTC).")


def _from_api(key: m.SshKey, declared: str | None = None) -> SshKeyState:
    line = " ".join(key.public_key.split())
    # The service may drop or rewrite the comment; the same key is no difference.
    if declared and material(declared) == material(line):
        line = declared
    return SshKeyState(
        id=str(key.id),
        name=key.name,
        public_key=line,
        fingerprint=fingerprint(line),
        type=line.split()[0],
        created_at=as_text(key.created_at),
    )


class SshKeyNoun(base.Noun[SshKeyInputs, SshKeyState]):
    kind: ClassVar[str] = "ssh_key"
    title: ClassVar[str] = "SSH key"
    Inputs = SshKeyInputs
    State = SshKeyState
    natural_key: ClassVar = ("public_key", "name")
    default_name = True
    replacement_is_free = True
    delete_before_replace = True
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:manage"),
        "update": (),
        "delete": ("servers:manage",),
    }

    def find(self, context: Context, inputs: SshKeyInputs) -> SshKeyState | None:
        """By fingerprint, else by name."""
        keys = context.client.ssh_keys.list()
        same = self._same_material(keys, inputs)
        if same is None:
            named = [key for key in keys if key.name == inputs.name]
            if len(named) > 1:
                raise Ambiguous(f"SSH key name {inputs.name!r}", [str(key.id) for key in named])
            same = named[0] if named else None
        return _from_api(same, inputs.public_key) if same else None

    def read(self, context: Context, id: str, last: SshKeyState | None = None) -> SshKeyState | None:
        for key in context.shared(("ssh_keys",), context.client.ssh_keys.list):
            if str(key.id) == id:
                return _from_api(key, last.public_key if last else None)
        return None

    def all(self, context: Context, *, name: str | None = None, fingerprint: str | None = None, **_: Any) -> Iterable[SshKeyState]:
        """By ``name`` and by ``fingerprint`` in the SHA256 form."""
        states = (_from_api(key) for key in context.client.ssh_keys.list())
        return (state for state in states if name in (None, state.name) and fingerprint in (None, state.fingerprint))

    def create(self, context: Context, inputs: SshKeyInputs) -> SshKeyState:
        with context.claims.alone(f"ssh key {fingerprint(inputs.public_key)}"):
            if existing := self._existing(context, inputs):
                return existing
            try:
                return _from_api(context.client.ssh_keys.create(name=inputs.name, public_key=inputs.public_key), inputs.public_key)
            except (TransportError, ApiError) as error:
                if isinstance(error, ApiError) and error.status < 500 and error.status != 409:
                    raise
                # The answer was lost, or somebody was faster: what is on the account now decides.
                if existing := self._existing(context, inputs):
                    return existing
                raise
            finally:
                context.reads.forget("ssh_keys")

    def _existing(self, context: Context, inputs: SshKeyInputs) -> SshKeyState | None:
        key = self._same_material(context.client.ssh_keys.list(), inputs)
        if key is None:
            return None
        if key.name != inputs.name:
            raise Foreign(
                f"this public key is on the account already, as {key.name!r} (id {key.id}), and the API cannot rename it. "
                f"Next: declare it with the name {key.name!r}, or delete it first",
                id=str(key.id),
            )
        return _from_api(key, inputs.public_key)

    @staticmethod
    def _same_material(keys: Iterable[m.SshKey], inputs: SshKeyInputs) -> m.SshKey | None:
        """The key with the same material; of several (a service may allow doubles) one of the wished name, else the oldest."""
        if inputs.public_key is None:  # a declaration that names a key without describing it
            return None
        same = [key for key in keys if material(key.public_key) == material(inputs.public_key)]
        return min(same, key=lambda key: (key.name != inputs.name, key.id), default=None)

    def update(self, context: Context, state: SshKeyState, inputs: SshKeyInputs, fields: frozenset[str]) -> SshKeyState:
        raise NounError(f"an SSH key cannot be changed in place ({', '.join(sorted(fields))})")

    def delete(self, context: Context, state: SshKeyState) -> None:
        try:
            context.client.ssh_keys.delete(int(state.id))
        except NotFound:
            return
        except TransportError:
            if any(str(key.id) == state.id for key in context.client.ssh_keys.list()):
                raise
        finally:
            context.reads.forget("ssh_keys")


SSH_KEY = SshKeyNoun()
