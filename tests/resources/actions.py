"""What the tests of actions share."""

from datetime import datetime
from typing import Any

from pulumi_hosting.actions import ACTIONS, ActionOutcome, act, check
from pulumi_hosting.exactly_once import purchase_journal
from tests.resources.conftest import EmulatorClock, ResourceHarness

HOOK = "https://hooks.example.com/x"
PASSWORD = "Correct-Horse-9"


class ItsClock(EmulatorClock):
    """The emulator's time, which other tests have moved."""

    def now(self) -> datetime:
        return datetime.fromisoformat(self.control("GET", "/")["now"])


def do(
    harness: ResourceHarness, kind: str, raw: dict[str, Any], *, dry_run: bool = False, **more: Any
) -> ActionOutcome:
    """One run of an action, as a new process that remembers nothing."""
    approve = more.pop("approve", lambda cost: None)
    action = ACTIONS[kind]
    context = harness.context(identity="ansible:/play", name_is_identity=True, **more)
    context.session.clock = ItsClock(harness.control)
    result = act(context, action, check(action, raw), dry_run=dry_run, approve=approve)
    purchase_journal.reported(context.unreported)  # as a frontend does, with the result shown
    return result


def one(shown: Any) -> dict[str, Any]:
    """What is shown of a single result."""
    assert isinstance(shown, dict)
    return shown


def sent(harness: ResourceHarness, method: str = "POST") -> list[str]:
    """What the last run sent with ``method``."""
    return [line for line in harness.transports[-1].sent if line.startswith(method)]


def server(harness: ResourceHarness, **more: Any) -> str:
    """A server that is there, by its id."""
    return str(
        harness.order(
            {"tariff_id": 1, "os": "debian-12", "name": "web-1", "notes": "", **more},
            identity=f"pulumi:{more}",
        ).id
    )


# --- api_key_revoke ----------------------------------------------------------------------------------------


def new_key(harness: ResourceHarness, mode: str = "live") -> tuple[str, str]:
    made = harness.control("POST", "/keys", {"mode": mode, "name": "ci", "scopes": "read_only"})
    return str(made["id"]), made["key"]
