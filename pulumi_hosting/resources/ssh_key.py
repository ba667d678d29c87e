"""An SSH public key of the account (API document, "SSH keys").

Found by its fingerprint and never doubled: the API has neither an idempotency key nor a guard for it, so
creation looks before and after it sends. It cannot be changed in place; a new name or key is a new object,
and the old one goes first.

A key is shared: several stacks may declare the same one, and people add keys in the control panel. Nothing on
a key tells who added it, so only the run that got the answer to its creation counts as its creator. Any other
declaration takes the key over and never deletes it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import fingerprint
from pulumi_hosting.client.exceptions import ApiError, HostingError, InvalidResponse, NotFound, TransportError
from pulumi_hosting.exactly_once import catalog_reads, key_users
from pulumi_hosting.exactly_once.local_files import taken_again, turn
from pulumi_hosting.exactly_once.ownership_check import must_be_the_recorded_one
from pulumi_hosting.resources import base
from pulumi_hosting.resources.api_fields import At, shown
from pulumi_hosting.resources.base import ADOPTS, REPLACES, IdText, Trait
from pulumi_hosting.resources.drift_fields import Drift, renamed
from pulumi_hosting.resources.powers import Adoptable, Findable, Validated
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceConflict, ResourceError, failing_with
from pulumi_hosting.session.request import Request


def _normal_form(text: str) -> str:
    """Single spaces: ``type base64 comment``."""
    return " ".join(text.split())


def material(public_key: str) -> str:
    """The part that is the key: type and base64, without the comment."""
    return " ".join(public_key.split()[:2])


class SshKeyInputs(base.Inputs):
    name: Annotated[m.SshKeyName, REPLACES, Drift(renamed)] = Field(
        description="Name shown in the account. A change makes a new key."
    )
    public_key: Annotated[
        m.PublicKey, AfterValidator(_normal_form), Trait(replaces=True, normal=material)
    ] = Field(
        description="One OpenSSH public key line, `type base64 comment`; the comment is no part of it. "
        "A change makes a new key."
    )
    adopt_id: Annotated[IdText | None, ADOPTS] = m.optional(
        "Take over this key of the account, which must have the declared name and be the declared key. "
        "Needed only if the account has several such keys."
    )


class SshKeyState(base.State):
    api = m.SshKey
    id: Annotated[str, At()]
    name: Annotated[str, At()]
    public_key: Annotated[str, At()] = Field(
        description="The public key line, as declared if the account holds the same key."
    )
    fingerprint: Annotated[str, At()]
    type: Annotated[str, At()]
    created_at: Annotated[str | None, At()] = None
    taken_over: bool | None = m.optional(
        "With Pulumi: whether it was already on the account, so that destroy keeps it. Absent with Ansible."
    )


def _from_api(key: m.SshKey, declared: str | None = None, taken_over: bool | None = None) -> SshKeyState:
    line = _normal_form(key.public_key)
    # The service may drop or rewrite the comment; the same key is no difference.
    if declared and material(declared) == material(line):
        line = declared
    return SshKeyState(
        **shown(SshKeyState, key)
        | {"id": str(key.id), "public_key": line, "fingerprint": fingerprint(line), "type": line.split()[0]},
        taken_over=taken_over,
    )


def _found(request: Request, key: m.SshKey, declared: str | None = None) -> SshKeyState:
    """The state of a key that was on the account already. If no state remembers it, it does not say so."""
    return _from_api(key, declared, None if request.name_is_identity else True)


def _same(keys: Iterable[m.SshKey], public_key: str) -> list[m.SshKey]:
    return [key for key in keys if material(key.public_key) == material(public_key)]


def _by_id(keys: Iterable[m.SshKey], id: str) -> m.SshKey | None:
    return next((key for key in keys if str(key.id) == id), None)


def _picked(request: Request, pick: Callable[[list[m.SshKey]], m.SshKey | None]) -> m.SshKey | None:
    """The key that ``pick`` chooses; None only if a list shows it that is as new as the request wants."""
    began = request.clock.monotonic()
    found = pick(catalog_reads.ssh_keys(request))
    if found is None and request.fresh:
        found = pick(catalog_reads.ssh_keys(request, request.seconds_since(began)))
    return found


class SshKeyResource(
    base.Resource[SshKeyInputs, SshKeyState],
    Findable[SshKeyInputs, SshKeyState],
    Adoptable[SshKeyInputs],
    Validated,
):
    kind: ClassVar[str] = "ssh_key"
    title: ClassVar[str] = "SSH key"
    natural_key: ClassVar = ("public_key", "name")
    default_name = True
    replacement = "free"
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:manage"),
        "update": (),
        "delete": ("servers:manage",),
    }

    def read(self, request: Request, id: str, last: SshKeyState | None = None) -> SshKeyState | None:
        key = _picked(request, lambda keys: _by_id(keys, id))
        if key is None or last is None:
            return None if key is None else _found(request, key)
        self._must_be_the_recorded_one(request, last, key, "the state stays as it was")
        if last.taken_over is None:
            return _found(request, key, last.public_key)
        return _from_api(key, last.public_key, last.taken_over)

    def _must_be_the_recorded_one(
        self, request: Request, state: SshKeyState, key: m.SshKey, outcome: str
    ) -> None:
        """By its material, which never changes."""
        if not request.name_is_identity:
            recorded = {"fingerprint": state.fingerprint or None}
            shown = {"fingerprint": fingerprint(key.public_key)}
            must_be_the_recorded_one(self.title, state.id, recorded, shown, outcome)

    def create(self, request: Request, inputs: SshKeyInputs) -> SshKeyState:
        state = self._created(request, inputs)
        key_users.record(request, {state.id: state.created_at})
        return state

    @taken_again
    def _created(self, request: Request, inputs: SshKeyInputs) -> SshKeyState:
        if inputs.adopt_id is not None:
            named = self._adoptable(request.client.ssh_keys.list(), inputs, inputs.adopt_id)
            return _found(request, named, inputs.public_key)
        with turn(request, f"ssh key {fingerprint(inputs.public_key)}", "adding an SSH key"):
            if existing := self._existing(request, inputs):
                return existing
            try:
                made = request.client.ssh_keys.create(name=inputs.name, public_key=inputs.public_key)
                return self._kept(request, inputs, made)
            except (TransportError, ApiError, InvalidResponse) as error:
                if isinstance(error, ApiError) and error.status < 500 and error.status != 409:
                    raise
                # The answer was lost, or another process was faster: what is on the account now decides.
                if existing := self._existing(request, inputs):
                    return existing
                raise
            finally:
                request.reads.forget("ssh_keys")

    @staticmethod
    def _adoptable(keys: Iterable[m.SshKey], inputs: SshKeyInputs, id: str) -> m.SshKey:
        found = _by_id(keys, id)
        if found is None:
            raise ResourceError(
                f"adopt_id: there is no SSH key {id} on this account. Next: correct adopt_id, or leave it out"
            )
        if found.name != inputs.name or material(found.public_key) != material(inputs.public_key):
            other = "is another key" if found.name == inputs.name else f"is named {found.name!r}"
            raise ResourceError(f"adopt_id: SSH key {id} {other}. Next: declare it as it is")
        return found

    def _existing(self, request: Request, inputs: SshKeyInputs) -> SshKeyState | None:
        key = self._same_material(request.client.ssh_keys.list(), inputs.name, inputs.public_key)
        if key is None:
            return None
        if key.name != inputs.name:
            raise ResourceConflict(_other_name(key), id=str(key.id))
        state = _found(request, key, inputs.public_key)
        if not request.name_is_identity:
            self._takeover(state).announce(request)
        return state

    def _kept(self, request: Request, inputs: SshKeyInputs, made: m.SshKey) -> SshKeyState:
        """Of keys that several processes added at the same moment each keeps the one with the lowest id,
        and deletes its own otherwise.
        """
        own = _from_api(made, inputs.public_key, None if request.name_is_identity else False)
        try:
            keys = _same(request.client.ssh_keys.list(), inputs.public_key)
            same = [key for key in keys if key.name == inputs.name]
        except HostingError as error:  # it was made, and that must be remembered
            request.warn(
                f"SSH key {made.id} was added, and whether another process added it too is not known: {error}"
            )
            return own
        first = min(same, key=lambda key: key.id, default=made)
        if first.id >= made.id:
            return own
        try:
            request.client.ssh_keys.delete(made.id)
        except HostingError as error:
            request.warn(
                f"SSH key {made.id} is the same as {first.id}, which another process added, and "
                f"could not be deleted: {error}"
            )
            return own
        kept = "" if request.name_is_identity else "; destroy keeps it"
        request.info(f"takes over SSH key {first.id}, which another process added at the same moment{kept}")
        return _found(request, first, inputs.public_key)

    @staticmethod
    def _same_material(keys: Iterable[m.SshKey], name: str | None, public_key: str | None) -> m.SshKey | None:
        """The key with the same material; of several (a service may allow doubles) one of the declared
        name, else the oldest.
        """
        if public_key is None:  # a declaration that names a key without describing it
            return None
        return min(_same(keys, public_key), key=lambda key: (key.name != name, key.id), default=None)

    def update(
        self, request: Request, state: SshKeyState, inputs: SshKeyInputs, fields: frozenset[str]
    ) -> SshKeyState:
        raise ResourceError(f"an SSH key cannot be changed in place ({', '.join(sorted(fields))})")

    def delete(self, request: Request, state: SshKeyState) -> None:
        key_users.forget(request, state.id)
        if request.name_is_identity:
            self._delete(request, state)
        elif state.taken_over is not False:
            if self.read(request, state.id, state) is not None:
                request.warn(
                    f"SSH key {state.name} ({state.id}) stays: it was not created here. {_HOW_TO_DELETE}"
                )
        elif self._is_there(request, state):
            if users := key_users.of_other_stacks(request, state.id, state.created_at):
                request.warn(
                    f"SSH key {state.name} ({state.id}) stays: a run on this machine noted that "
                    f"{' and '.join(users)} use{'s' if len(users) == 1 else ''} it. {_HOW_TO_DELETE}"
                )
                return
            self._delete(request, state)
            request.info(
                f"SSH key {state.name} ({state.id}) deleted; other stacks may declare it, which the API does "
                f"not show: there {request.client.words.read_and_apply} adds it again"
            )

    def _is_there(self, request: Request, state: SshKeyState) -> bool:
        """Whether it is there, by a list that is asked for now. Raises ``NotOurs`` if it is another key."""
        found = _by_id(catalog_reads.ssh_keys(request, max_age=0.0), state.id)
        if found is None:
            request.gone.add(state.id)
            return False
        self._must_be_the_recorded_one(request, state, found, "nothing was deleted")
        return True

    @staticmethod
    def _delete(request: Request, state: SshKeyState) -> None:
        try:
            request.client.ssh_keys.delete(int(state.id))
        except NotFound:
            request.gone.add(state.id)
        except TransportError as error:
            with failing_with(error):
                keys = [*request.client.ssh_keys.list()]
            if _by_id(keys, state.id) is not None:
                raise
        finally:
            request.reads.forget("ssh_keys")

    def find(self, request: Request, inputs: SshKeyInputs) -> SshKeyState | None:
        """By fingerprint, else by name."""

        def pick(keys: list[m.SshKey]) -> m.SshKey | None:
            same = self._same_material(keys, inputs.name, inputs.public_key)
            if same is not None:
                return same
            named = [key for key in keys if key.name == inputs.name]
            if len(named) > 1:
                raise AmbiguousMatch(f"SSH key name {inputs.name!r}", [str(key.id) for key in named])
            return named[0] if named else None

        found = _picked(request, pick)
        return _from_api(found, inputs.public_key) if found else None

    def all(
        self, request: Request, *, name: str | None = None, fingerprint: str | None = None, **_: Any
    ) -> Iterable[SshKeyState]:
        """By ``name`` and by ``fingerprint`` in the SHA256 form."""
        states = (_from_api(key) for key in request.client.ssh_keys.list())
        return (
            state
            for state in states
            if name in (None, state.name) and fingerprint in (None, state.fingerprint)
        )

    def takeover(self, request: Request, inputs: SshKeyInputs) -> Takeover | None:
        keys = catalog_reads.ssh_keys(request)
        if inputs.adopt_id is not None:
            named = self._adoptable(keys, inputs, inputs.adopt_id)
            state = _found(request, named, inputs.public_key)
            return Takeover(state, "adopt_id names it; destroy keeps it", title=self.title)
        found = self._same_material(keys, inputs.name, inputs.public_key)
        if found is None or found.name != inputs.name or str(found.id) in request.owned:
            return None
        return self._takeover(_found(request, found, inputs.public_key))

    def _takeover(self, state: SshKeyState) -> Takeover:
        return Takeover(state, "it is on the account already; destroy keeps it", title=self.title)

    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> base.Reasons:
        """Whether the key is on the account under another name: it cannot be renamed."""
        if (
            request.name_is_identity
            or not {"name", "public_key"} <= desired.keys()
            or "public_key" not in fields
        ):
            return {}
        keys = catalog_reads.ssh_keys(request)
        found = self._same_material(keys, desired["name"], desired["public_key"])
        # an own key goes before the new one comes
        if found is None or found.name == desired["name"] or str(found.id) in request.owned:
            return {}
        return {"name": _other_name(found)}


_HOW_TO_DELETE = "Next: delete it in the control panel if nothing else uses it"


def _other_name(key: m.SshKey) -> str:
    return (
        f"this public key is on the account already, as {key.name!r} (id {key.id}), and the API cannot "
        f"rename it. Next: declare it with the name {key.name!r}, or delete it first"
    )


SSH_KEY = SshKeyResource()
