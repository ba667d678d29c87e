"""A playbook of Ansible in this process: its tasks run by the modules' own code."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.managed_objects import ManagedObject, ManagedObjects
from tests.ansible.in_process import result_of, task_of
from tests.simulation.network import Network
from tests.simulation.stack import SimulatedClock, StepFailed

Tasks = Sequence[tuple[str, Mapping[str, Any]]]


class Playbook:
    """Each run is a new process. What earlier runs reported is only kept for the account check."""

    check_mode = False
    host = "localhost"

    def __init__(self, network: Network) -> None:
        self.network, self.key = network, network.live_key
        self.defaults: dict[str, Any] = {}
        self.results: list[dict[str, Any]] = []
        self.folder = Path(".")

    def client(self, key: str, read_only: bool) -> Client:
        """A client of one task."""
        network = self.network
        return Client(
            key,
            "http://127.0.0.1:1/v1",
            transport=network,
            clock=network.monotonic,
            sleep=network.sleep,
            rng=network.rng,
            read_only=read_only,
        )

    def run(self, tasks: Tasks) -> list[dict[str, Any]]:
        """Run the tasks; the first failure ends the run with ``StepFailed``."""
        with tempfile.TemporaryDirectory(prefix="play-") as folder:
            self.folder = Path(folder)
            return [self._task(name, options) for name, options in tasks]

    def _task(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        play: Any = self
        task = task_of(play, name, options)
        with_real_clock = task.request

        def request(*arguments: Any, **more: Any) -> Any:
            made = with_real_clock(*arguments, **more)
            made.session.clock = SimulatedClock(network=self.network)
            return made

        task.request = request  # type: ignore[method-assign]  # the task makes a session of its own
        result = result_of(name, task)
        self.network.may_die()
        self.results.append(result)
        if result["failed"]:
            raise StepFailed(str(result.get("msg")))
        return result

    @property
    def managed(self) -> list[ManagedObject]:
        return list(ManagedObjects.of_results(self.results))
