"""Form one: dynamic resources. Import the classes from ``pulumi_hosting``; the providers' place in this file is part of users' state.

The provider classes hold nothing and are found by name, so what Pulumi stores of them is a short reference that never changes.
"""

import builtins
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    ResourceProvider,
    UpdateResult,
)

from pulumi_hosting.api.errors import HostingError
from pulumi_hosting.api.redact import clean_text
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.session import SESSION
from pulumi_hosting.provider.values import MANAGED, camel
from pulumi_hosting.resources import NOUNS

T = TypeVar("T")


class Failed(Exception):
    """What a person reads when a step fails: one line."""


Failed.__module__ = builtins.__name__  # printed without a module path before it


class _Provider(ResourceProvider):
    """Serves the noun named by ``kind``."""

    kind: str
    serialize_as_secret_always = False  # there is nothing in it: encrypting it for each resource would only cost time

    def configure(self, req: ConfigureRequest) -> None:
        # The SDK sends whole tracebacks to the engine; nothing of ours belongs into one.
        sys.tracebacklimit = 0
        SESSION.configure({name: req.config.get(f"hosting:{name}") for name in ("apiKey", "baseUrl")})

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        inputs, failures = _plainly(lambda: self._adapter.check(_olds, news))
        # A failure that names its property is printed with the property's value, secret or not: so the name goes into the reason.
        return CheckResult(inputs, [CheckFailure("", f"{camel(name)}: {reason}" if name else reason) for name, reason in failures.items()])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        found = _plainly(lambda: self._adapter.diff(_id, _olds, _news))
        return DiffResult(changes=found.changes, replaces=list(found.replaces), delete_before_replace=found.delete_before_replace)

    def create(self, props: dict[str, Any]) -> CreateResult:
        id, outs = _plainly(lambda: self._adapter.create(props))
        return CreateResult(id, outs)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        found = _plainly(lambda: self._adapter.read(id_, props))
        if found is None:
            if MANAGED not in props:  # a lookup by id: "gone" would go unnoticed
                _fail(f"there is no {self._adapter.noun.title} with id {clean_text(id_, 40)} on this account. Next: correct the id")
            return ReadResult("", {})
        id, outs, inputs = found
        return ReadResult(id, outs, inputs)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_plainly(lambda: self._adapter.update(_id, _olds, _news)))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        _plainly(lambda: self._adapter.delete(_id, _props))

    @property
    def _adapter(self) -> Adapter:
        return Adapter(NOUNS[self.kind])


def _plainly(step: Callable[[], T]) -> T:
    """Run a step; what goes wrong becomes one line, without the values of any variable."""
    try:
        return step()
    except HostingError as error:
        message = str(error)
    except Exception as error:  # noqa: BLE001  # a traceback would carry the values of variables, secrets among them
        message = f"the provider failed ({type(error).__name__}): a defect of pulumi-hosting. Next: report it, with what led here"
    _fail(message)


def _fail(message: str) -> NoReturn:
    raise Failed(message) from None


class ServerProvider(_Provider):
    kind = "server"


class SshKeyProvider(_Provider):
    kind = "ssh_key"
