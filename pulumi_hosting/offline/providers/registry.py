"""Provider resources (`pulumi:providers:NAME`) and the plugins behind them.

A provider resource is checked, diffed, created and updated like any other, only that its provider is this
registry.
"""

import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import PluginError, ProviderError
from ..model.property_values import UNKNOWN_STRING, Properties, without_secrets
from ..model.provider_results import CheckResult, ProviderDiff, ProviderResult
from ..model.state import ResourceState
from ..model.urns import package_of, provider_reference, urn_type
from .plugin_process import STOP_TIMEOUT, PluginProcess
from .provider_client import ProviderClient

DYNAMIC_PACKAGE = "pulumi-python"
"""The package of dynamic resources: its provider is started with the program's Python."""

_RUN_DYNAMIC_PROVIDER = Path(__file__).with_name("run_dynamic_provider.py")


@dataclass
class PluginHost:
    """Finds and starts provider plugins for one operation, and stops them all at its end."""

    python: str
    root: Path
    directory: Path
    project: str
    environ: Mapping[str, str]
    on_line: Callable[[str, str, bool], None]
    arguments: tuple[str, ...] = ()
    engine_address: str = ""

    def __post_init__(self) -> None:
        self._providers: list[ProviderClient] = []
        self._lock = threading.Lock()

    def command(self, package: str) -> list[str]:
        if package == DYNAMIC_PACKAGE:
            return [self.python, "-u", str(_RUN_DYNAMIC_PROVIDER)]
        executable = f"pulumi-resource-{package}"
        found = shutil.which(executable, path=self.environ.get("PATH"))
        if found is None:
            raise PluginError(
                f"no resource plugin '{executable}' found on PATH; the offline engine downloads "
                "none, so install it first"
            )
        return [found]

    def load(self, package: str) -> ProviderClient:
        environ = {**self.environ, "PULUMI_PROJECT": self.project}
        command = [*self.command(package), *self.arguments, self.engine_address]
        on_line = partial(self.on_line, package)
        process = PluginProcess(package, command, self.directory, environ, on_line)
        provider = ProviderClient(process, self.engine_address, self.root, self.directory)
        with self._lock:
            self._providers.append(provider)
        return provider

    def cancel(self) -> None:
        for provider in list(self._providers):
            provider.cancel()

    def close(self) -> None:
        """Stop every plugin: all are asked to cancel, as Pulumi's engine does, then ended at once and waited
        for."""
        self.cancel()
        processes = [provider._process for provider in self._providers]
        for provider in self._providers:
            provider._channel.close()
        for process in processes:
            process.interrupt()
        deadline = time.monotonic() + STOP_TIMEOUT
        for process in processes:
            process.stop(max(0.1, deadline - time.monotonic()))
        self._providers.clear()


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

    def loaded(self, ref: str, states: list[ResourceState]) -> ProviderClient:
        """A provider that the program has registered, else the one of the state, loaded now."""
        with self._lock:
            if ref not in self._providers:
                known = (state for state in states if provider_reference(state.urn, state.id) == ref)
                if (state := next(known, None)) is None:
                    raise PluginError(f"could not find provider {ref} in the state")
                self._configured(self._load(state.urn), state.urn, state.id, state.inputs)
            return self._providers[ref]

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
