"""The files of one stack: its settings, its state, its lock, and the secrets in them."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import InvalidConfiguration, OfflineError, UnfinishedCreates
from ..model.property_values import Properties, SecretValue, hide_secrets, without_secrets
from ..model.state import ResourceState, Snapshot
from ..model.urns import STACK_TYPE
from .backend import Backend, backend_directory
from .deployment_json import deployment_from_json, deployment_to_text, problem_of
from .passphrase import Crypter, passphrase_from
from .project import Project, StackConfig, load_project

ORGANIZATION = "organization"


class StackStore:
    """`cwd` is the project's directory, or one below it; `environ` stands for the process environment."""

    def __init__(
        self, cwd: str | Path, name: str | None = None, *, environ: Mapping[str, str] | None = None
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.project: Project = load_project(Path(cwd))
        self.backend = Backend(backend_directory(self.environ, self.project.root), self.project.name)
        self._name = _checked_name(name, self.project.name) if name else self.backend.selected()
        self._crypter: Crypter | None = None

    @property
    def name(self) -> str:
        if self._name is None:
            known = self.backend.stacks()
            raise InvalidConfiguration(
                f"no stack selected; there is {', '.join(known)}. Next: add --stack {known[0]}, or run "
                f"`pulumi-hosting offline stack select {known[0]}`"
                if known
                else "no stack found. Next: run `pulumi-hosting offline stack init dev`"
            )
        return self._name

    # The stack and its configuration.

    def init(self) -> None:
        """Create the stack with a new encryption salt, and select it.

        Raises `InvalidConfiguration` when it exists.
        """
        self.backend.check_new(self.name)
        self.config().ensure_crypter(self.environ)
        self.backend.create(self.name)
        self.backend.select(self.name)

    def config(self) -> StackConfig:
        return StackConfig.load(self.project, self.name)

    def set_config(self, key: str, value: str, *, secret: bool = False) -> None:
        config = self.config()
        config.set(key, value, config.ensure_crypter(self.environ) if secret else None)
        config.save()

    def _config_and_values(self) -> tuple[StackConfig, Properties]:
        config = self.config()
        return config, config.values(config.crypter(passphrase_from(self.environ)))

    def get_config(self, key: str) -> str:
        """One value, decrypted. Raises `InvalidConfiguration` when it is not set."""
        config, values = self._config_and_values()
        if config.key(key) not in values:
            raise InvalidConfiguration(
                f"configuration key '{key}' not found for stack '{self.name}'; set it with "
                f"`config set {key} VALUE`"
            )
        return str(without_secrets(values[config.key(key)]))

    def list_config(self, *, show_secrets: bool = False) -> dict[str, tuple[str, bool]]:
        """Every value and whether it is secret.

        Keys of the project are without its name; secrets are `[secret]` unless shown.
        """
        _, values = self._config_and_values()
        own = f"{self.project.name}:"
        return {
            key.removeprefix(own): (
                str(without_secrets(value) if show_secrets else hide_secrets(value)),
                isinstance(value, SecretValue),
            )
            for key, value in values.items()
        }

    def remove_config(self, key: str) -> None:
        """Remove one value from the stack's settings, if it is set."""
        config = self.config()
        if (config.data.get("config") or {}).pop(config.key(key), None) is not None:
            config.save()

    def crypter(self) -> Crypter:
        """Encrypts the stack's secrets with the salt of its settings, else of its state, else a new one."""
        if self._crypter is None:
            config = self.config()
            if not config.data.get("encryptionsalt"):
                saved = _salt_of(self.backend.read(self.name) or {})
                if saved:
                    config.data = {"encryptionsalt": saved} | config.data
                    config.save()
            self._crypter = config.ensure_crypter(self.environ)
        return self._crypter

    # State.

    def _state_crypter(self, data: Properties) -> Crypter | None:
        provider = data.get("secrets_providers") or {}
        if provider and provider.get("type") != "passphrase":
            raise InvalidConfiguration(
                f"the stack's secrets are encrypted by {provider.get('type')!r}; the offline engine decrypts "
                f"passphrase secrets only"
            )
        salt = _salt_of(data)
        if not salt:
            return self.crypter()
        own = self.crypter()
        return own if own.state == salt else Crypter(passphrase_from(self.environ), salt)

    def snapshot(self) -> Snapshot:
        """The saved state, secrets decrypted. Raises `StackNotFound`, `InvalidConfiguration`."""
        data = self.backend.read(self.name) or {}
        snapshot = deployment_from_json(data, self._state_crypter(data))
        salt = _salt_of(data)
        if salt and salt != self.crypter().state:
            for state in (*snapshot.resources, *(item.resource for item in snapshot.pending)):
                state.saved_text = None  # encrypted under another salt: write again
        return snapshot

    def save(self, snapshot: Snapshot) -> None:
        """Replace the saved state. Raises `OfflineError` when it cannot be written."""
        text = deployment_to_text(snapshot, self.crypter())
        try:
            self.backend.write(self.name, text)
        except OSError as error:
            raise OfflineError(
                f"the state could not be saved to {self.backend.stack_file(self.name)}: {error.strerror}"
            ) from None

    def export(self, *, show_secrets: bool = False) -> Properties:
        """The deployment as `stack export` prints it; with `show_secrets` in plain text."""
        data = self.backend.read(self.name)
        if data is None:
            return {"version": 3}
        if show_secrets:
            data = json.loads(deployment_to_text(self.snapshot(), None))
        return {"version": 3, "deployment": data}

    def import_state(self, data: object) -> None:
        """Replace the state by an exported deployment, without its pending operations, as in Pulumi."""
        if not isinstance(data, dict) or data.get("version") != 3:
            raise InvalidConfiguration("this is not an exported deployment of version 3")
        deployment = {} if data.get("deployment") is None else data["deployment"]
        if problem := problem_of(deployment):
            raise InvalidConfiguration(f"this is not an exported deployment: {problem}")
        snapshot = deployment_from_json(deployment, self._state_crypter(deployment))
        wrong = [
            state.urn
            for state in snapshot.resources
            if not state.urn.startswith(f"urn:pulumi:{self.name}::{self.project.name}::")
        ]
        if wrong:
            raise InvalidConfiguration(f"the deployment belongs to another stack or project: {wrong[0]}")
        for state in snapshot.resources:
            state.saved_text = None
        with self.backend.locked(self.name):
            self.save(Snapshot(snapshot.resources, [], snapshot.extra))

    def forget(self, urn: str) -> None:
        """Remove one resource from the state and leave the object as it is, as `state delete` does."""
        with self.backend.locked(self.name):
            snapshot = self.snapshot()
            found = [state for state in snapshot.resources if state.urn == urn]
            if len(found) != 1:
                what = "is not in the state" if not found else "names several resources of the state"
                raise OfflineError(f"{urn} {what}; `stack export` shows the state")
            snapshot.resources.remove(found[0])
            for state in snapshot.resources:
                if urn in state.needed_urns():
                    raise OfflineError(f"{urn} is needed by {state.urn}; delete that first")
            self.save(snapshot)

    def unprotect(self) -> None:
        """Let every resource be deleted and replaced, as `state unprotect --all` does."""
        with self.backend.locked(self.name):
            snapshot = self.snapshot()
            for state in snapshot.resources:
                state.protect = False
            self.save(snapshot)

    def outputs(self, *, show_secrets: bool = False) -> Properties:
        for state in self.snapshot().resources:
            if state.type == STACK_TYPE:
                shown = without_secrets if show_secrets else hide_secrets
                return {key: shown(value) for key, value in state.outputs.items()}
        return {}

    def remove(self, *, force: bool = False) -> None:
        """Remove an empty stack; with `force` any."""
        data = self.backend.read(self.name) or {}
        if not force:
            refuse_unfinished([item.resource for item in self.snapshot().unfinished()])
        if data.get("resources") and not force:
            raise OfflineError(
                f"'{self.name}' still has resources; destroy them first, or remove it "
                "with --force and forget them"
            )
        self.backend.remove(self.name)
        self.project.stack_file(self.name).unlink(missing_ok=True)

    def cancel(self) -> int:
        """Remove the locks that a killed engine left. Returns how many there were."""
        self.backend.read(self.name)
        return self.backend.break_locks(self.name)


def refuse_unfinished(creates: list[ResourceState]) -> None:
    """Raises `UnfinishedCreates` if an interrupted run was creating something.

    A destroy would report success and leave what that run created: nothing in the state leads to it.
    """
    if creates:
        names = ", ".join(f"{state.type} {state.name}" for state in creates)
        raise UnfinishedCreates(
            f"an interrupted run was creating {names}; what it created may exist and cost money, and is not "
            "in the state. Next: run `pulumi-hosting offline up`, which finds what was created, then "
            "destroy (`pulumi-hosting offline refresh --clear-pending-creates` forgets it instead)"
        )


def _salt_of(data: Properties) -> str | None:
    return ((data.get("secrets_providers") or {}).get("state") or {}).get("salt")


def _checked_name(name: str, project: str) -> str:
    """A stack's name, given alone or in full: `organization/<project>/<stack>`."""
    name = name.removeprefix(f"{ORGANIZATION}/{project}/").removeprefix(f"{ORGANIZATION}/")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name) or name.startswith("."):
        raise InvalidConfiguration(
            f"'{name}' is not a stack name; it may have letters, digits, '-', '_' and '.'"
        )
    return name
