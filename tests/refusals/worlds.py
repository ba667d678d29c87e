"""An account, and one frontend on it: what a person declares there, and the lines that tell of a refusal."""

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import connection, main
from pulumi_hosting.client.client import Client
from pulumi_hosting.provider.failures import PartialFailure, StepFailed, as_user_error, check_failure
from pulumi_hosting.provider.names import IDENTITY, camel
from tests.ansible.in_process import Play
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account

DAY = 86400


@dataclass
class Declared:
    """What a person has declared: the inputs, and in Pulumi the entry of the state."""

    kind: str
    name: str
    inputs: dict[str, Any]
    entry: Entry | None = None


@dataclass
class _Happening:
    method: str
    path: str
    do: Callable[[], object]
    after: int
    after_write: str

    def is_due(self, method: str, path: str) -> bool:
        if self.after_write or method != self.method or not re.search(self.path, path):
            return False
        self.after -= 1
        return self.after < 0

    def answered(self, method: str, path: str) -> None:
        if method != "GET" and self.after_write and re.search(self.after_write, path):
            self.after_write = ""


def _show(found: Any, values: dict[str, Any]) -> None:
    if isinstance(found, dict):
        if values.keys() <= found.keys():
            found.update(values)
        for part in found.values():
            _show(part, values)
    for part in found if isinstance(found, list) else ():
        _show(part, values)


@dataclass
class World(ABC):
    """``lines``: what was refused. ``settings``: of every run from now on."""

    account: Account = field(default_factory=Account)
    lines: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path("nowhere")
    """For files that a person names."""
    between: Callable[[], object] = lambda: None
    """Happens once, between Check and Create of Pulumi."""
    _happenings: list["_Happening"] = field(default_factory=list)
    _shown: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    frontend = ""

    def __post_init__(self) -> None:
        self.run()

    @abstractmethod
    def run(self) -> None:
        """A new run begins: an engine's, a play, a command."""

    @abstractmethod
    def declare(self, kind: str, as_: str = "it", **inputs: Any) -> Declared:
        """Declare something new, ``as_`` it is called in the program."""

    @abstractmethod
    def change(self, what: Declared, **inputs: Any) -> None:
        """Declare it otherwise."""

    def refresh(self, what: Declared) -> None:
        """Read what the state has, if there is one."""
        return None

    @abstractmethod
    def remove(self, what: Declared) -> None:
        """Have it deleted."""

    @abstractmethod
    def act(self, kind: str, **inputs: Any) -> None:
        """Do an action."""

    # --- what happens on the way

    def meanwhile(
        self, method: str, path: str, do: Callable[[], object], *, after: int = 0, after_write: str = ""
    ) -> None:
        """``do`` that once, before such a request arrives: the first, or that ``after`` so many; not before a
        write to the path ``after_write`` was answered."""
        self._happenings.append(_Happening(method, path, do, after, after_write))

    def on_creation(self, path: str, do: Callable[[], object]) -> None:
        """``do`` that once, after the plan; its second read of ``path`` follows."""
        self.meanwhile("GET", path, do, after=1)

    def shows(self, path: str, **values: Any) -> None:
        """From now on the answers of such reads have these values, in each object that has the names."""
        self._shown.append((path, values))

    def handle(
        self, inner: Callable[[httpx.Request], httpx.Response], request: httpx.Request
    ) -> httpx.Response:
        """The way of a request to the account and back."""
        path = request.url.path.removeprefix("/v1")
        if path.startswith("/_control"):
            return inner(request)
        for one in [*self._happenings]:
            if one.is_due(request.method, path):
                self._happenings.remove(one)
                one.do()
        answer = inner(request)
        for one in self._happenings:
            one.answered(request.method, path)
        found = [
            values for shown, values in self._shown if request.method == "GET" and re.search(shown, path)
        ]
        if not found or answer.status_code >= 400:
            return answer
        body = json.loads(answer.read())
        for values in found:
            _show(body, values)
        return httpx.Response(answer.status_code, json=body)

    def elsewhere(self) -> None:
        """From now on on another machine, which has no locks and notes of this one."""
        os.environ["HOSTING_RUNTIME_DIR"] += "-elsewhere"

    def server(self, name: str = "web", **inputs: Any) -> Declared:
        given = {"tariff_id": 1, "os": "debian-12", "name": name, **inputs}
        return self.declare("server", name, **given)

    @property
    def control(self) -> Callable[..., Any]:
        return self.account.control

    @property
    def ids(self) -> list[str]:
        """The ids of the living servers."""
        return self.account.living_ids

    def fault(self, method: str, path: str, times: int = 1, **action: Any) -> None:
        self.account.fault(action, method=method, path=path, times=times)

    def remove_named(self, name: str) -> None:
        """Have the server of that name deleted, which only who has no state can ask for."""
        return None

    def reinstall(self, **inputs: Any) -> None:
        """Have the server web installed again."""
        given = {"name": "web", "erase": "web", "os": "debian-12", **inputs}
        file = "root_password_file" if self.frontend == "ansible" else "password_file"
        given[file] = str(self.folder / f"reinstalled-{len(self.lines)}")
        self.act("server_reinstall", **{name: value for name, value in given.items() if value is not None})


class Pulumi(World):
    frontend = "pulumi"
    process: Process

    def run(self) -> None:
        self.process = provider_process(self.account, **self.settings)

    @contextmanager
    def written_down(self) -> Iterator[None]:
        try:
            with as_user_error(PartialFailure):
                yield
        except StepFailed as failure:
            self.lines.append(str(failure))
        except PartialFailure as failure:
            self.lines += failure.reasons

    def checked(self, what: Declared, olds: dict[str, Any]) -> dict[str, Any] | None:
        given = {camel(name): value for name, value in what.inputs.items()}
        identity = f"pulumi:t/dev/{what.kind}/{what.name}"
        inputs, failures = self.process.of(what.kind).check(olds, {**given, IDENTITY: identity})
        self.lines += [check_failure(name, reason) for name, reason in failures.items()]
        return None if failures else inputs

    def declare(self, kind: str, as_: str = "it", **inputs: Any) -> Declared:
        what = Declared(kind, as_, inputs)
        with self.written_down():
            if (checked := self.checked(what, {})) is not None:
                happens, self.between = self.between, lambda: None
                happens()
                try:
                    what.entry = Entry(*self.process.of(kind).create(checked), checked)
                except PartialFailure as failure:
                    what.entry = Entry(failure.id, dict(failure.outputs), checked)
                    raise
        return what

    def change(self, what: Declared, **inputs: Any) -> None:
        entry = what.entry
        assert entry is not None
        what.inputs = {**what.inputs, **inputs}
        with self.written_down():
            if (checked := self.checked(what, entry.inputs)) is not None:
                adapter = self.process.of(what.kind)
                found = adapter.diff(entry.id, entry.outputs, checked)
                if found.replaces:
                    what.entry = Entry(*adapter.create(checked), checked)
                    adapter.delete(entry.id, entry.outputs)
                elif found.changes:
                    what.entry = Entry(entry.id, adapter.update(entry.id, entry.outputs, checked), checked)

    def refresh(self, what: Declared) -> None:
        assert what.entry is not None
        with self.written_down():
            found = self.process.of(what.kind).read(what.entry.id, what.entry.outputs, what.entry.inputs)
            if found is not None:
                self.process.of(what.kind).diff(found[0], found[1], what.entry.inputs)
                what.entry = Entry(found[0], found[1], what.entry.inputs)

    def on_creation(self, path: str, do: Callable[[], object]) -> None:
        self.between = do

    def imported(self, kind: str, id: str) -> Declared:
        """What `pulumi import` reads."""
        what = Declared(kind, "it", {})
        with self.written_down():
            found = self.process.of(kind).read(id, {})
            what.entry = None if found is None else Entry(*found)
        return what

    def remove(self, what: Declared) -> None:
        assert what.entry is not None
        with self.written_down():
            self.process.delete(what.kind, what.entry)

    def act(self, kind: str, **inputs: Any) -> None:
        raise NotImplementedError("a program of Pulumi has no actions")


class Ansible(World):
    frontend = "ansible"
    play: Play
    names: ClassVar = {
        "webhook_subscription": ("url",),
        "server_ip": ("server_id",),
        "ptr": ("server_id", "address"),
    }

    def run(self) -> None:
        settings = dict(self.settings)
        self.play = Play(self.account, key=settings.pop("api_key", None), **settings)

    def remove_named(self, name: str) -> None:
        self.task("server", name=name, state="absent")

    def task(self, module: str, **options: Any) -> dict[str, Any]:
        result = self.play(module, **options)
        if result["failed"]:
            self.lines.append(result["msg"])
        return result

    def declare(self, kind: str, as_: str = "it", **inputs: Any) -> Declared:
        self.task(kind, **inputs)
        return Declared(kind, as_, inputs)

    def change(self, what: Declared, **inputs: Any) -> None:
        what.inputs = {**what.inputs, **inputs}
        self.task(what.kind, **what.inputs)

    def remove(self, what: Declared) -> None:
        named = {
            name: what.inputs[name] for name in self.names.get(what.kind, ("name",)) if name in what.inputs
        }
        self.task(what.kind, **named, state="absent")

    def act(self, kind: str, **inputs: Any) -> None:
        module, state = {
            "server_restart": ("server", {"state": "restarted"}),
            "server_reinstall": ("server", {"state": "reinstalled"}),
        }.get(kind, (kind, {}))
        self.task(module, **inputs, **state)


class CommandLine(World):
    frontend = "command line"
    environment: dict[str, str] = {}  # noqa: RUF012  # replaced, never changed

    def run(self) -> None:
        """Every command is a run."""

    def declare(self, kind: str, as_: str = "it", **inputs: Any) -> Declared:
        raise NotImplementedError("a command declares nothing")

    change = remove = declare  # type: ignore[assignment]  # nor this

    def _client(self, **options: Any) -> Client:
        return Client(
            self.settings.get("api_key", self.account.live_key),
            self.account.base_url,
            transport=self.account.transport(),
            clock=self.account.clock.now,
            sleep=self.account.advance,
            **options,
        )

    def act(self, kind: str, **inputs: Any) -> None:
        words = [
            word
            for name, value in inputs.items()
            for one in (value if isinstance(value, list) else [value])
            for word in (f"--{name.replace('_', '-')}", str(one))
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection, "Client", self._client)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            shown = CliRunner().invoke(main, ["action", kind.replace("_", "-"), *words, "--yes"])
        self.lines += re.findall("^[Ee]rror: (.*)", shown.stderr, re.MULTILINE)


WORLDS: dict[str, Callable[[], World]] = {"pulumi": Pulumi, "ansible": Ansible, "command line": CommandLine}
