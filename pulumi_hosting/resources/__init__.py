"""What a user declares: one file per resource, its optional powers beside it. ``base`` holds the contract."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from pulumi_hosting.resources.base import AnyResource

_HOMES = {
    "server": ("server_powers", "SERVER"),
    "domain": ("domain_powers", "DOMAIN"),
    "ssh_key": ("ssh_key", "SSH_KEY"),
    "server_ip": ("server_ip", "SERVER_IP"),
    "ptr": ("ptr", "PTR"),
    "webhook_subscription": ("webhook_subscription", "WEBHOOK_SUBSCRIPTION"),
}
"""Where the resource of each kind is."""


class _Resources(Mapping[str, AnyResource]):
    """Loads a resource when it is first used: a provider of servers does not wait for domains."""

    def __getitem__(self, kind: str) -> AnyResource:
        return _resource(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)

    def __contains__(self, kind: object) -> bool:
        return kind in _HOMES


@cache
def _resource(kind: str) -> AnyResource:
    module, name = _HOMES[kind]
    found: AnyResource = getattr(import_module(f"{__name__}.{module}"), name)
    return found


RESOURCES: Mapping[str, AnyResource] = _Resources()
"""Every resource by its kind; both frontends enumerate this, so a new resource cannot be forgotten by
either.
"""
