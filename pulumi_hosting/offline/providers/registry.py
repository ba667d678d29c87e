"""Provider resources (`pulumi:providers:NAME`) and the plugins behind them.

A provider resource is checked, diffed, created and updated like any other, only that its provider is this
registry.
"""

import threading
import uuid

from ..errors import PluginError
from ..model.property_values import UNKNOWN_STRING, Properties, without_secrets
from ..model.state import ResourceState
from ..model.urns import package_of, provider_id, provider_reference, provider_urn, urn_type
from .host import PluginHost
from .provider_client import ProviderClient
from .provider_results import CheckResult, ProviderDiff, ProviderResult

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
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        ignore: object,
        *,
        preview: bool,
    ) -> ProviderDiff:
        provider = (
            self._providers.get(provider_reference(urn, _UNCONFIGURED))
            or self._providers[provider_reference(urn, id)]
        )
        diff = provider.diff_config(urn, _config(old_inputs), old_outputs, _config(news))
        if diff.changes == "unknown":
            return ProviderDiff(
                "none" if without_secrets(old_outputs) == without_secrets(_config(news)) else "some",
                diff.replaces,
            )
        return diff

    def same(self, state: ResourceState, inputs: Properties) -> None:
        """Configure a provider of the state with its old inputs."""
        with self._lock:
            if provider_reference(state.urn, state.id) in self._providers:
                return
            provider = self._take(state.urn)
            provider.configure(state.urn, state.id, _config(inputs))
            self._set(state.urn, state.id, provider)

    def ensure(self, ref: str, states: list[ResourceState]) -> None:
        """Load the provider of a resource in the state, unless the program has registered it."""
        if not ref:
            return
        with self._lock:
            if ref in self._providers:
                return
            for state in states:
                if state.urn == provider_urn(ref) and state.id == provider_id(ref):
                    provider = self._load(state.urn)
                    provider.configure(state.urn, state.id, _config(state.inputs))
                    self._set(state.urn, state.id, provider)
                    return
        raise PluginError(f"could not find provider {ref} in the state")

    def create(self, urn: str, inputs: Properties, timeout: float, *, preview: bool) -> ProviderResult:
        provider = self._take(urn)
        id = UNKNOWN_STRING if preview else str(uuid.uuid4())
        provider.configure(urn, id, _config(inputs))
        self._set(urn, id, provider)
        return ProviderResult(id, _config(inputs))

    def update(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        timeout: float,
        ignore: object,
        *,
        preview: bool,
    ) -> ProviderResult:
        provider = self._take(urn)
        provider.configure(urn, id, _config(news))
        self._set(urn, id, provider)
        return ProviderResult(id, _config(news))

    def delete(self, urn: str, id: str, inputs: Properties, outputs: Properties, timeout: float) -> None:
        """Nothing to do: plugins end with the operation."""
