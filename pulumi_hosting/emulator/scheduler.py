"""When tasks run: those in the store, each at its own moment, and how long provisioning and address
assignment take.
"""

import logging
from dataclasses import dataclass

from pulumi_hosting.emulator import events
from pulumi_hosting.emulator.store import Store
from pulumi_hosting.emulator.tasks import TASKS

# The resolution of the clock: the balance before a task is the one of this much earlier.
INSTANT = 0.001

log = logging.getLogger("pulumi_hosting.emulator")


@dataclass
class Scheduler:
    """``provisioning_delay`` and ``ip_delay`` are seconds of the emulator's clock."""

    store: Store
    provisioning_delay: float = 0.0
    ip_delay: float = 0.0

    def after_provisioning(self, now: float, task: str, object_id: int, note: str = "") -> None:
        """Run ``task`` once the panel has finished what it starts now."""
        self.store.schedule(now + self.provisioning_delay, task, object_id, note)

    def after_address_assignment(self, now: float, task: str, object_id: int, note: str = "") -> None:
        """Run ``task`` once an address that is bought now is assigned."""
        self.store.schedule(now + self.ip_delay, task, object_id, note)

    def run_due(self, now: float) -> None:
        """Run every task that is due, in order, each with its own due time as the present. A failed task is
        logged and dropped.
        """
        while (due := self.store.next_due()) is not None and due <= now:
            with events.low_balance_events(self.store, due - INSTANT, due):
                while (task := self.store.pop_due(due)) is not None:
                    try:
                        TASKS[task.what](self.store, task)
                    except Exception:
                        log.exception("task %s of %s failed", task.what, task.object_id)
