"""Form one: dynamic resources. Import the classes from ``pulumi_hosting``; the providers' place in this file is part of users' state.

The provider classes hold nothing and are found by name, so what Pulumi stores of them is a short reference that never changes. A program
needs no more of them than that; what serves its resources is loaded by the provider's own process, with the first question.
"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pulumi.dynamic import CheckResult, ConfigureRequest, CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult

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


class ServerProvider(_Provider):
    kind = "server"


class SshKeyProvider(_Provider):
    kind = "ssh_key"


class DomainProvider(_Provider):
    kind = "domain"


class ServerIpProvider(_Provider):
    kind = "server_ip"


class PtrProvider(_Provider):
    kind = "ptr"


class WebhookSubscriptionProvider(_Provider):
    kind = "webhook_subscription"


PROVIDERS: Mapping[str, type[_Provider]] = {provider.kind: provider for provider in _Provider.__subclasses__()}
"""By kind of noun."""
