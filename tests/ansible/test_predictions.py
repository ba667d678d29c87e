"""Check mode predicts also what a resource says nothing special about."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, cast

import pytest

from ansible_collections.hosting.cloud.plugins.module_utils import planned_account, predictions
from ansible_collections.hosting.cloud.plugins.module_utils.run_memory import (
    ProcessStorage,
    RunMemory,
    planned_id,
)
from pulumi_hosting.client.transport import HttpTransport
from pulumi_hosting.planning.apply import Outcome
from pulumi_hosting.planning.diff import Diff, FieldChange
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import ADOPTS, REPLACES, Inputs, Resource, State
from pulumi_hosting.resources.powers import Findable, Sandboxed
from pulumi_hosting.session.request import Request


class ContactInputs(Inputs):
    email: Annotated[str, REPLACES]
    name: str
    adopt_id: Annotated[str | None, ADOPTS] = None


class ContactState(State):
    email: str = ""
    name: str = ""


class ContactResource(
    Resource[ContactInputs, ContactState], Findable[ContactInputs, ContactState], Sandboxed[ContactState]
):
    """A resource of which the collection knows nothing. No test asks the account for it."""

    kind: ClassVar[str] = "contact"
    title: ClassVar[str] = "contact"
    Inputs = ContactInputs
    State = ContactState
    scopes: ClassVar[dict[str, tuple[str, ...]]] = {}
    natural_key: ClassVar[tuple[str, ...]] = ("email",)
    sandbox = "listed"

    def find(self, request: Request, inputs: ContactInputs) -> None: ...
    def all(self, request: Request, **filters: Any) -> list[ContactState]: ...  # type: ignore[empty-body]  # not called
    def read(self, request: Request, id: str, last: ContactState | None = None) -> None: ...
    def create(self, request: Request, inputs: ContactInputs) -> ContactState: ...  # type: ignore[empty-body]  # not called
    def update(self, request: Request, state: ContactState, inputs: Any, fields: Any) -> ContactState: ...  # type: ignore[empty-body]  # not called
    def delete(self, request: Request, state: ContactState) -> None: ...
    def is_simulated(self, id: str) -> bool:
        return False


CONTACT = ContactResource()
DECLARED = ContactInputs(email="ada@example.com", name="Ada", adopt_id="7")
SHOWN = {"id": "7", "email": "ada@example.com", "name": "Ada"}
RENAMED = Diff((FieldChange("name", "Bo", "Ada", replaces=False),))


@pytest.mark.parametrize(
    ("outcome", "effect"),
    [
        (
            Outcome("created", None, {}, None),
            [
                "add",
                "contact",
                {"email": "ada@example.com", "name": "Ada", "created_at": "2026-01-01T00:00:00Z"},
            ],
        ),
        (Outcome("updated", SHOWN, {}, None, RENAMED), ["set", "contact", "7", {"name": "Ada"}]),
        (Outcome("deleted", SHOWN, None, None), ["delete", "contact", "7"]),
        (Outcome("unchanged", SHOWN, SHOWN, None), None),
    ],
)
def test_a_resource_without_rules_of_its_own_is_predicted(outcome: Outcome, effect: Any) -> None:
    memory = RunMemory(ProcessStorage(), account=lambda: "1001")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    session = SimpleNamespace(snapshot=lambda part, ask, max_age: ask())
    client = SimpleNamespace(service_now=lambda: now)
    request: Any = SimpleNamespace(mode="live", client=client, session=session)
    predictions.of_outcome(memory, request, CONTACT, DECLARED, outcome)
    if effect is not None and effect[0] == "add":
        effect[2]["id"] = planned_id("contact", "ada@example.com")
    assert list(memory.effects) == ([] if effect is None else [effect])


def test_its_reads_show_what_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_account, "RESOURCES", {**RESOURCES, "contact": CONTACT})
    planned_account._kinds.cache_clear()
    memory = RunMemory(ProcessStorage(), account=lambda: "1001")
    memory.predict_new("contact", "ada@example.com", {"email": "ada@example.com"})
    memory.predict_change("contact", "7", {"name": "Bo"})
    transport = planned_account.PlannedTransport(cast(HttpTransport, None), memory)  # nothing is sent
    try:
        changed = transport._changed("list_contacts", [], {}, {"data": [{"id": 7, "email": "b@example.com"}]})
    finally:
        planned_account._kinds.cache_clear()
    assert changed is not None
    assert [item["email"] for item in changed["data"]] == ["b@example.com", "ada@example.com"]
    assert changed["data"][0]["name"] == "Bo"
