"""Safety steps, each switched off: what the simulation must notice."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pulumi_hosting.exactly_once import charges, server_order, server_search
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.server_order import KeyState, ServerOrder
from pulumi_hosting.planning import apply
from pulumi_hosting.resources.domain import DomainBase
from pulumi_hosting.resources.server_ip import ServerIpBase
from pulumi_hosting.resources.ssh_key import SshKeyResource
from pulumi_hosting.resources.webhook_subscription import WebhookSubscriptionBase


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _empty(*_: Any, **__: Any) -> list[Any]:
    return []


def _random_key(self: KeyRing, generation: int) -> str:
    return f"iac2-{uuid.uuid4().hex}"


def _first_key(self: KeyRing, generation: int, original: Callable[..., str] = KeyRing.key) -> str:
    return original(self, 0)


def _believed(self: ServerOrder, server_id: int, ordered_as: str | None) -> Any:
    """Any server that the service still shows, whatever became of it."""
    return self.request.client.servers.get(server_id)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _only_at_the_end(request: Any, resource: Any, inputs: Any, made: Any, save: Any, wait: bool) -> Any:
    state = apply._stamped(made, request.mode)
    state = apply._settle(request, resource, state, inputs, request.mode)
    save(state)
    return state


MUTANTS: Mapping[str, tuple[Any, str, Any]] = {
    "orders under way are not waited for": (ServerOrder, "_quiesce", _nothing),
    "the account is not looked at before an order": (ServerOrder, "_found", _nothing),
    "an order is repeated with a random key": (KeyRing, "key", _random_key),
    "a key is never left behind": (KeyRing, "key", _first_key),
    "a dead server is believed": (ServerOrder, "_alive", _believed),
    "an unknown outcome takes the next key": (server_order, "classify", _always(KeyState.CONSUMED)),
    "ownership tags are not read": (server_search, "is_tag_of", _always(False)),
    "a new object is saved only when it is ready": (apply, "_created", _only_at_the_end),
    "a purchase under way is not waited for": (charges, "_is_lost", _always(False)),
    "addresses of unknown origin are not looked for": (ServerIpBase, "_loose", _empty),
    "a bought domain is not looked for": (DomainBase, "_fresh", _nothing),
    "a tagged subscription is not looked for": (WebhookSubscriptionBase, "_tagged", _empty),
    "doubles of a subscription stay": (WebhookSubscriptionBase, "_doubles", _empty),
    "an SSH key is not looked for": (SshKeyResource, "_same_material", _nothing),
}
"""What is switched off → where, and by what."""


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """Within, one safety step is missing."""
    owner, attribute, replacement = MUTANTS[name]
    if isinstance(getattr(owner, "__dict__", {}).get(attribute), staticmethod):
        replacement = staticmethod(replacement)
    with patch.object(owner, attribute, replacement):
        yield
