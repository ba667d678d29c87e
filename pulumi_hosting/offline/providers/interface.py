"""What the engine asks of a provider. The registry implements it for provider resources."""

from collections.abc import Iterable
from typing import Protocol

from ..model.property_values import Properties
from ..model.provider_results import CheckResult, ProviderDiff, ProviderResult
from ..model.state import ResourceState


class ResourceProvider(Protocol):
    """What steps ask of a provider; the registry answers for provider resources.

    `old` is a resource as it is in the state, `new` as it is to become.
    """

    def check(
        self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool
    ) -> CheckResult: ...
    def diff(
        self, old: ResourceState, news: Properties, ignore: Iterable[str], *, preview: bool
    ) -> ProviderDiff: ...
    def create(self, new: ResourceState, *, preview: bool) -> ProviderResult: ...
    def update(self, old: ResourceState, new: ResourceState, *, preview: bool) -> ProviderResult: ...
    def delete(self, old: ResourceState) -> None: ...
    def read(
        self, urn: str, id: str, inputs: Properties | None, outputs: Properties | None, timeout: float
    ) -> ProviderResult: ...
