"""Provider resources (`pulumi:providers:NAME`) and the plugins behind them.

A provider resource is checked, diffed, created and updated like any other, only that its provider is this
registry.
"""

import threading
import uuid
from collections.abc import Iterable

from ..errors import PluginError, ProviderError
from ..model.property_values import UNKNOWN_STRING, Properties, without_secrets
from ..model.provider_results import CheckResult, ProviderDiff, ProviderResult
from ..model.state import ResourceState
from ..model.urns import package_of, provider_reference, urn_type
from .host import PluginHost
from .provider_client import ProviderClient

_UNCONFIGURED = "unconfigured"
_INTERNAL = "__internal"


def _config(inputs: Properties) -> Properties:
    return {key: value for key, value in inputs.items() if key != _INTERNAL}


class Registry:
    def __init__(self, host: PluginHost) -> None:
        self._host = host
        self._providers: dict[str, ProviderClient] = {}
        self._aliases: dict[str, str] = {}
        self._lock = threading.RLock()

    def get(self, ref: str) -> ProviderClient | None:
        return self._providers.get(ref)

    def add_alias(self, urn: str, old: str) -> None:
        self._aliases[urn] = old

    def _set(self, urn: str, id: str, provider: ProviderClient) -> None:
        with self._lock:
            self._providers[provider_reference(urn, id)] = provider
            if urn in self._aliases:
                self._providers[provider_reference(self._aliases[urn], id)] = provider

    def _take(self, urn: str) -> ProviderClient:
        """The provider that `check` loaded, else a fresh one."""
        with self._lock:
            return self._providers.pop(provider_reference(urn, _UNCONFIGURED), None) or self._load(urn)

    def _load(self, urn: str) -> ProviderClient:
        return self._host.load(package_of(urn_type(urn)))

    def check(
        self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool
    ) -> CheckResult:
        provider = self._load(urn)
        checked = provider.check_config(urn, _config(olds), _config(news))
        if checked.failures:
            provider.close()
            return checked
        self._set(urn, _UNCONFIGURED, provider)
        kept = {key: news[key] for key in ("version", _INTERNAL) if key in news}
        return CheckResult(checked.inputs | kept)

    def diff(
        self, old: ResourceState, news: Properties, ignore: Iterable[str], *, preview: bool
    ) -> ProviderDiff:
        provider = (
            self._providers.get(provider_reference(old.urn, _UNCONFIGURED))
            or self._providers[provider_reference(old.urn, old.id)]
        )
        news = _config(news)
        diff = provider.diff_config(old.urn, _config(old.inputs), old.outputs, news)
        if diff.changes != "unknown":
            return diff
        same = without_secrets(old.outputs) == without_secrets(news)
        return ProviderDiff("none" if same else "some", diff.replaces)

    def _configured(self, provider: ProviderClient, urn: str, id: str, inputs: Properties) -> ProviderResult:
        inputs = _config(inputs)
        provider.configure(urn, id, inputs)
        self._set(urn, id, provider)
        return ProviderResult(id, inputs)

    def same(self, state: ResourceState, inputs: Properties) -> None:
        """Configure a provider of the state with its old inputs."""
        with self._lock:
            if provider_reference(state.urn, state.id) not in self._providers:
                self._configured(self._take(state.urn), state.urn, state.id, inputs)

    def ensure(self, ref: str, states: list[ResourceState]) -> None:
        """Load the provider of a resource in the state, unless the program has registered it."""
        with self._lock:
            if not ref or ref in self._providers:
                return
            for state in states:
                if provider_reference(state.urn, state.id) == ref:
                    self._configured(self._load(state.urn), state.urn, state.id, state.inputs)
                    return
        raise PluginError(f"could not find provider {ref} in the state")

    def create(self, new: ResourceState, *, preview: bool) -> ProviderResult:
        id = UNKNOWN_STRING if preview else str(uuid.uuid4())
        return self._configured(self._take(new.urn), new.urn, id, new.inputs)

    def update(self, old: ResourceState, new: ResourceState, *, preview: bool) -> ProviderResult:
        return self._configured(self._take(new.urn), new.urn, old.id, new.inputs)

    def delete(self, old: ResourceState) -> None:
        """Nothing to do: plugins end with the operation."""

    def read(
        self, urn: str, id: str, inputs: Properties | None, outputs: Properties | None, timeout: float
    ) -> ProviderResult:
        raise ProviderError(f"the offline engine reads no providers: {urn}")


ResourceProvider = ProviderClient | Registry
"""What steps ask. `old` is a resource as it is in the state, `new` as it is to become."""
