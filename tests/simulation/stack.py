"""A stack of Pulumi in this process: the least engine that keeps a state and calls the provider's adapter."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.conversion import is_unknown
from pulumi_hosting.provider.failures import (
    PartialFailure,
    order_still_open,
    paid_and_not_recorded,
)
from pulumi_hosting.provider.names import IDENTITY, camel
from pulumi_hosting.provider.provider_session import InterruptibleClock, ProviderSession
from pulumi_hosting.rehearsal.managed_objects import ManagedObject
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import WaitTimeout
from tests.simulation.network import BASE_URL, Network

Declared = Mapping[str, tuple[str, Mapping[str, Any]]]
"""Name in the program → kind and inputs, in the order of the program. An input ``=other`` is the id of
``other``."""


class StepFailed(Exception):
    """A step of a command failed; what was done before it stays."""


@dataclass
class Entry:
    """One resource in the state."""

    kind: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    unfinished: bool = False
    """Whether it must be read before anything else is done with it."""


@dataclass
class SimulatedClock(InterruptibleClock):
    """The clock of a provider's process, which is the account's."""

    network: Network | None = None

    def monotonic(self) -> float:
        assert self.network is not None
        return self.network.monotonic()

    def sleep(self, seconds: float) -> None:
        assert self.network is not None
        self.network.sleep(seconds)


@dataclass
class Stack:
    """The state of a stack and the commands that change it. Each command is a new process of the provider.

    ``native``: whether the state can hold an order that is no server yet, as with the native provider.
    """

    network: Network
    name: str
    native: bool
    entries: dict[str, Entry] = field(default_factory=dict)
    leaving: list[tuple[str, Entry]] = field(default_factory=list)
    """Replaced objects that are to be deleted."""
    messages: list[str] = field(default_factory=list)

    def up(self, declared: Declared) -> None:
        """Bring the account to what is declared. Raises ``StepFailed``; ``Killed`` ends the process."""
        session = self._process()
        for name in [name for name, entry in self.entries.items() if entry.unfinished]:
            self._read(session, name)
        for name, (kind, desired) in declared.items():
            self._step(session, name, kind, desired)
        self._delete_replaced(session)
        for name in [name for name in reversed(self.entries) if name not in declared]:
            self._delete(session, self.entries[name])
            del self.entries[name]

    def preview(self, declared: Declared) -> None:
        """What ``up`` would do; the state stays."""
        session, before = self._process(), copy.deepcopy(self.entries)
        try:
            for name in [name for name, entry in self.entries.items() if entry.unfinished]:
                self._read(session, name)
            for name, (kind, desired) in declared.items():
                self._step(session, name, kind, desired, preview=True)
        finally:
            self.entries = before

    def refresh(self) -> None:
        """Bring the state to what the account shows."""
        session = self._process()
        for name in list(self.entries):
            self._read(session, name)

    def destroy(self) -> None:
        """Delete everything that is in the state, the last first."""
        session = self._process()
        for name in [name for name, entry in self.entries.items() if entry.unfinished]:
            self._read(session, name)
        self._delete_replaced(session)
        for name in list(reversed(self.entries)):
            self._delete(session, self.entries[name])
            del self.entries[name]

    @property
    def managed(self) -> list[ManagedObject]:
        """What the stack manages, for the account check."""
        kept = [(name, entry, False) for name, entry in self.entries.items()]
        kept += [(name, entry, True) for name, entry in self.leaving]
        return [
            ManagedObject(
                entry.kind,
                entry.id,
                name,
                is_leaving=leaving,
                is_kept_paid=bool(entry.inputs.get("keepPaid")),
            )
            for name, entry, leaving in kept
        ]

    # --- steps

    def _step(
        self,
        session: ProviderSession,
        name: str,
        kind: str,
        desired: Mapping[str, Any],
        *,
        preview: bool = False,
    ) -> None:
        old = self.entries.get(name)
        news = {camel(field): self._value(value) for field, value in desired.items()}
        news[IDENTITY] = f"pulumi:shop/{self.name}/{kind}/{name}"
        adapter = self._adapter(session, kind)
        with self._reported(name):
            inputs, failures = adapter.check(old.inputs if old else {}, news)
            if failures:
                raise StepFailed(f"{name}: {self._refusal(failures)}")
            assert not any(is_unknown(value) for value in inputs.values())
            if old is None:
                if preview:
                    adapter.preview_create(inputs)
                else:
                    self._create(adapter, name, kind, inputs)
                return
            difference = adapter.diff(old.id, old.outputs, inputs)
            if preview:
                if difference.changes and not difference.replaces:
                    adapter.preview_update(old.id, old.outputs, inputs)
                return
            if not difference.changes:
                old.inputs = inputs
            elif not difference.replaces:
                outputs = adapter.update(old.id, old.outputs, inputs)
                self.network.may_die()
                old.inputs, old.outputs = inputs, outputs
            elif difference.delete_before_replace:
                self._delete(session, old)
                del self.entries[name]
                self._create(adapter, name, kind, inputs)
            else:
                # Pulumi keeps the old entry, marked for deletion, in the step that records the new one.
                self._create(adapter, name, kind, inputs, replaced=old)

    def _refusal(self, failures: Mapping[str, str]) -> str:
        return str(failures)

    def _create(
        self, adapter: Adapter, name: str, kind: str, inputs: dict[str, Any], replaced: Entry | None = None
    ) -> None:
        try:
            id, outputs = adapter.create(inputs)
            unfinished = False
        except WaitTimeout as error:
            raise error if self.native else order_still_open(error) from None
        except PartialFailure as partial:
            if partial.refresh and not self.native:
                raise paid_and_not_recorded(partial, adapter.resource.title) from None
            id, outputs, unfinished = partial.id, dict(partial.outputs), partial.refresh
            self.messages.append(str(partial))
        self.network.may_die()
        if replaced is not None:
            self.leaving.append((name, replaced))
        self.entries[name] = Entry(kind, id, inputs, outputs, unfinished)
        if unfinished:
            raise StepFailed(f"{name}: unfinished")

    def _read(self, session: ProviderSession, name: str) -> None:
        entry = self.entries[name]
        with self._reported(name):
            try:
                found = self._adapter(session, entry.kind).read(entry.id, entry.outputs, entry.inputs)
            except PartialFailure as partial:
                raise StepFailed(f"{name}: {partial}") from None
        self.network.may_die()
        if found is None:
            del self.entries[name]
            return
        entry.id, entry.outputs, live = found
        entry.inputs = {**entry.inputs, **live}
        entry.unfinished = False

    def _delete_replaced(self, session: ProviderSession) -> None:
        for name, entry in list(self.leaving):
            self._delete(session, entry)
            self.leaving.remove((name, entry))

    def _delete(self, session: ProviderSession, entry: Entry) -> None:
        with self._reported(entry.id):
            self._adapter(session, entry.kind).delete(entry.id, entry.outputs)
        self.network.may_die()

    # --- parts

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not (isinstance(value, str) and value.startswith("=")):
            return value
        if value[1:] not in self.entries:
            raise StepFailed(f"{value[1:]} is not there")
        return self.entries[value[1:]].id

    def _reported(self, name: str) -> "_Reported":
        return _Reported(self.messages, name)

    def _process(self) -> ProviderSession:
        def connect(api_key: Any, base_url: str, **options: Any) -> Client:
            return Client(
                api_key,
                base_url,
                transport=self.network,
                clock=self.network.monotonic,
                sleep=self.network.sleep,
                rng=self.network.rng,
                **options,
            )

        session = ProviderSession({}, connect)
        session.clock = SimulatedClock(network=self.network)
        session.configure({"apiKey": self.network.live_key, "baseUrl": BASE_URL})
        return session

    def _adapter(self, session: ProviderSession, kind: str) -> Adapter:
        return Adapter(
            RESOURCES[kind], session, self.messages.append, self.messages.append, ids_may_change=self.native
        )


class _Reported:
    """Errors of the provider end the step; anything else is a defect and ends the simulation."""

    def __init__(self, messages: list[str], name: str) -> None:
        self._messages, self._name = messages, name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, HostingError):
            self._messages.append(str(error))
            raise StepFailed(f"{self._name}: {error}") from None
