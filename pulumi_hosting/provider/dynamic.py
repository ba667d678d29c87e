"""Form one: dynamic resources. Import the classes from ``pulumi_hosting``; the providers' place in this file is part of users' state.

The provider classes hold nothing and are found by name, so what Pulumi stores of them is a short reference that never changes. A program
needs no more of them than that; what serves its resources is loaded by the provider's own process, with the first question.
"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pulumi.dynamic import CheckResult, ConfigureRequest, CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult

from pulumi_hosting.provider.names import class_of
from pulumi_hosting.provider.sdk.exports import KINDS

if TYPE_CHECKING:
    from pulumi_hosting.provider.dynamic_server import Served


class _Provider(ResourceProvider):
    """Serves the resource named by ``kind``."""

    kind: str
    serialize_as_secret_always = False  # there is nothing in it: encrypting it for each resource would only cost time

    def configure(self, req: ConfigureRequest) -> None:
        # The SDK sends whole tracebacks to the engine; nothing of ours belongs into one.
        sys.tracebacklimit = 0
        self._served.configure(req)

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        return self._served.check(_olds, news)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return self._served.diff(_id, _olds, _news)

    def create(self, props: dict[str, Any]) -> CreateResult:
        return self._served.create(props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return self._served.read(id_, props)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return self._served.update(_id, _olds, _news)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        self._served.delete(_id, _props)

    @property
    def _served(self) -> "Served":
        from pulumi_hosting.provider.dynamic_server import Served  # a program of a user never comes here

        return Served(self.kind)


def _provider(kind: str) -> type[_Provider]:
    return type(f"{class_of(kind)}Provider", (_Provider,), {"kind": kind, "__module__": __name__})


PROVIDERS: Mapping[str, type[_Provider]] = {kind: _provider(kind) for kind in KINDS}
"""By kind of resource."""
_BY_NAME = {provider.__name__: provider for provider in PROVIDERS.values()}


def __getattr__(name: str) -> Any:
    """A provider class by its name, as a state refers to it."""
    if name not in _BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _BY_NAME[name]
