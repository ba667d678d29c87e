"""Finds and starts the provider plugins of an operation."""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..errors import PluginError
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
        self._early: dict[str, Future[PluginProcess]] = {}
        self._starter = ThreadPoolExecutor(1)

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

    def _start(self, package: str) -> PluginProcess:
        environ = {**self.environ, "PULUMI_PROJECT": self.project}
        command = [*self.command(package), *self.arguments, self.engine_address]
        return PluginProcess(
            package, command, self.directory, environ, lambda line, error: self.on_line(package, line, error)
        )

    def start_early(self, package: str) -> None:
        """Start a plugin that will be needed, while something else takes its time."""
        with self._lock:
            if package not in self._early:
                self._early[package] = self._starter.submit(self._start, package)

    def load(self, package: str) -> ProviderClient:
        with self._lock:
            early = self._early.pop(package, None)
        process = early.result() if early is not None else self._start(package)
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
        for early in self._early.values():
            with contextlib.suppress(PluginError):
                processes.append(early.result())
        self._starter.shutdown()
        for provider in self._providers:
            provider._channel.close()
        for process in processes:
            process.interrupt()
        deadline = time.monotonic() + STOP_TIMEOUT
        for process in processes:
            process.stop(max(0.1, deadline - time.monotonic()))
        self._providers.clear()
        self._early.clear()
