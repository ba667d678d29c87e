"""What the engine asks of a provider. The registry implements it for provider resources."""

from collections.abc import Iterable
from typing import Protocol

from ..model.property_values import Properties
from .provider_results import CheckResult, ProviderDiff, ProviderResult


class ResourceProvider(Protocol):
    """What steps ask of a provider; the registry answers for provider resources."""

    def check(
        self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool
    ) -> CheckResult: ...
    def diff(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        ignore: Iterable[str],
        *,
        preview: bool,
    ) -> ProviderDiff: ...
    def create(self, urn: str, inputs: Properties, timeout: float, *, preview: bool) -> ProviderResult: ...
    def update(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        timeout: float,
        ignore: Iterable[str],
        *,
        preview: bool,
    ) -> ProviderResult: ...
    def delete(self, urn: str, id: str, inputs: Properties, outputs: Properties, timeout: float) -> None: ...


class ReadableProvider(ResourceProvider, Protocol):
    def read(
        self, urn: str, id: str, inputs: Properties | None, state: Properties | None, timeout: float
    ) -> ProviderResult: ...
