"""Deciding and saving, without any process: diffs, targets, aliases, the journal, durations, the display."""

from typing import Any

import pytest

from pulumi_hosting.offline.display.engine_events import Events
from pulumi_hosting.offline.display.terminal import Display
from pulumi_hosting.offline.engine.monitor import seconds
from pulumi_hosting.offline.errors import InitError, ProviderError
from pulumi_hosting.offline.generator.decisions import shown as _shown
from pulumi_hosting.offline.generator.deletions import with_replace_on_changes
from pulumi_hosting.offline.model.goals import Targets
from pulumi_hosting.offline.model.property_values import UNKNOWN_STRING, SecretValue
from pulumi_hosting.offline.model.provider_results import ProviderDiff, ProviderResult, diff_of_inputs
from pulumi_hosting.offline.model.state import PendingOperation, ResourceState, Snapshot
from pulumi_hosting.offline.steps.base import Step, ignoring, verb
from pulumi_hosting.offline.steps.changes import CreateStep, DeleteStep, SameStep, UpdateStep
from pulumi_hosting.offline.steps.reads import RefreshStep
from pulumi_hosting.offline.storage.journal import Journal
from tests.offline.test_state import thing


def test_targets() -> None:
    everything = Targets()
    assert not everything
    assert "urn:x" in everything
    some = Targets(("urn:pulumi:dev::p::toy:index:Thing::a", "**::b*"))
    assert thing("a").urn in some
    assert thing("b1").urn in some
    assert thing("c").urn not in some
    assert "urn:pulumi:dev::p::t::b::x" not in Targets(("urn:pulumi:dev::p::t::*",))


def test_the_comparison_of_the_engine() -> None:
    diff = diff_of_inputs({"a": 1, "b": 2, "c": SecretValue(3)}, {"b": 3, "c": 3, "d": 4})
    assert (diff.changes, diff.diffs) == ("some", ("a", "b", "d"))
    assert diff.detailed == {"a": "delete", "b": "update", "d": "add"}
    assert diff.inverted().detailed == {"a": "add", "b": "update", "d": "delete"}
    assert diff_of_inputs({"a": 1}, {"a": 1}) == ProviderDiff("none")


def test_replace_on_changes() -> None:
    diff = ProviderDiff("some", diffs=("a", "b"), detailed={"a.x": "update", "b": "add"})
    changed = with_replace_on_changes(diff, ["a"], False)
    assert changed.replaces == ("a",)
    assert changed.detailed == {"a.x": "update-replace", "b": "add"}
    assert changed.replace
    assert with_replace_on_changes(diff, [], False) is diff
    assert with_replace_on_changes(ProviderDiff("none"), ["*"], False) == ProviderDiff("none")
    assert with_replace_on_changes(ProviderDiff("none"), ["*"], True).replaces == ("#initerror",)


def test_ignored_changes() -> None:
    new, failed = ignoring({"a": 2, "b": {"c": 2}}, {"a": 1}, ["a", "b.c", "["])
    assert new == {"a": 1, "b": {"c": 2}}
    assert failed == ["b.c"]


@pytest.mark.parametrize(
    ("op", "doing", "done"),
    [
        ("create", "create", "created"),
        ("create-replacement", "create replacement", "created replacement"),
        ("delete-replaced", "delete original", "deleted original"),
        ("discard", "discard", "discarded"),
        ("discard-replaced", "discard original", "discarded original"),
        ("import-replacement", "import replacement", "imported replacement"),
        ("read", "read", "read"),
        ("read-replacement", "read for replacement", "read for replacement"),
        ("refresh", "refresh", "refreshed"),
    ],
)
def test_an_operation_in_words(op: str, doing: str, done: str) -> None:
    assert (verb(op, done=False), verb(op, done=True)) == (doing, done)


def test_refused_values_are_printed_except_secrets() -> None:
    assert [_shown(value) for value in ("bad", None, SecretValue("hush"))] == ["{bad}", "{<nil>}", "[secret]"]


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("1.5m", 90)])
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "10", "5m later"])
def test_a_wrong_duration(text: str) -> None:
    with pytest.raises(ProviderError, match="customTimeout"):
        seconds(text)


def test_the_text_of_init_errors() -> None:
    result = ProviderResult("1", {})
    assert str(InitError(["a", "b"], result)) == "2 errors occurred:\n\t* a\n\t* b"
    assert str(InitError([], result)) == "resource init failed"


def test_a_step_without_its_state() -> None:
    with pytest.raises(TypeError, match="no old state"):
        _ = Step("create", None, thing("a")).before
    with pytest.raises(TypeError, match="no new state"):
        _ = Step("delete", thing("a")).after


# The journal.


class Saved:
    def __init__(self) -> None:
        self.snapshots: list[tuple[list[str], list[str]]] = []

    def __call__(self, snapshot: Snapshot) -> None:
        self.snapshots.append(
            ([state.name for state in snapshot.resources], [item.resource.name for item in snapshot.pending])
        )


def test_a_create_is_written_before_and_after() -> None:
    saved = Saved()
    journal = Journal(Snapshot([thing("a")]), saved)
    step = CreateStep("create", None, thing("b"))
    journal.begin(step)
    journal.end(step, True)
    assert saved.snapshots == [(["a"], ["b"]), (["b", "a"], [])]


def test_a_failed_create_is_not_saved() -> None:
    saved = Saved()
    journal = Journal(Snapshot(), saved)
    step = CreateStep("create", None, thing("b"))
    journal.begin(step)
    journal.end(step, False)
    assert saved.snapshots[-1] == ([], [])


def test_unchanged_resources_are_written_once_at_the_end() -> None:
    saved = Saved()
    old = [thing("a"), thing("b")]
    journal = Journal(Snapshot(old), saved)
    for state in reversed(old):
        same = SameStep("same", state, state.copy())
        journal.begin(same)
        journal.end(same, True)
    assert saved.snapshots == []
    journal.close()
    journal.close()
    assert saved.snapshots == [(["b", "a"], [])]


def test_an_unchanged_resource_with_a_new_option_is_written_at_once() -> None:
    saved = Saved()
    old = thing("a", protect=True)
    journal = Journal(Snapshot([old]), saved)
    same = SameStep("same", old, old.copy(protect=False))
    journal.end(same, True)
    assert len(saved.snapshots) == 1


def test_a_failed_delete_keeps_the_resource() -> None:
    saved = Saved()
    a, b = thing("a"), thing("b")
    journal = Journal(Snapshot([a, b]), saved)
    for state, done in ((a, True), (b, False)):
        step = DeleteStep("delete", state)
        journal.begin(step)
        journal.end(step, done)
    assert saved.snapshots[-1] == (["b"], [])


def test_pending_creates_are_kept_and_other_pending_operations_are_not() -> None:
    saved = Saved()
    pending = [PendingOperation("creating", thing("x")), PendingOperation("updating", thing("y"))]
    Journal(Snapshot([thing("a")], pending), saved).close()
    assert saved.snapshots == [(["a"], ["x"])]


def test_an_update_replaces_the_old_state() -> None:
    saved = Saved()
    a = thing("a", inputs={"n": 1})
    journal = Journal(Snapshot([a]), saved)
    step = UpdateStep("update", a, a.copy(inputs={"n": 2}))
    journal.begin(step)
    journal.end(step, True)
    assert saved.snapshots[-1] == (["a"], [])
    assert journal.snapshot().resources[0].inputs == {"n": 2}


# Display and events.


def shown(*steps: tuple[Step, str], diff: bool = False) -> list[str]:
    lines: list[str] = []
    display = Display(lines.append, stack="dev", diff=diff)
    events = Events([display], clock=lambda: 0)
    for step, op in steps:
        events.pre(step, planning=False)
        events.outputs(step, op, planning=False)
    return lines


def test_the_display_of_changes_hides_secrets() -> None:
    old = thing("a", inputs={"size": "s", "note": SecretValue("hush"), "old": 1, "__provider": "x"})
    new = thing("a", inputs={"size": "L", "note": SecretValue("hush2"), "new": 2, "__provider": "y"})
    step = UpdateStep("update", old, new)
    assert shown((step, "update")) == [" ~  toy:index:Thing a updated [diff: +new-old~size]"]
    assert shown((step, "update"), diff=True)[1:] == [
        "      + new: 2",
        "      - old: 1",
        '      ~ size: "s" => "L"',
    ]


def test_the_display_of_retained_resources() -> None:
    kept, gone = thing("kept", retain_on_delete=True), thing("gone")
    assert shown((DeleteStep("delete", kept), "delete"), (DeleteStep("delete", gone), "delete")) == [
        f" -  toy:index:Thing kept retained, not deleted (id {kept.id})",
        " -  toy:index:Thing gone deleted",
    ]
    assert shown((DeleteStep("delete-replaced", kept, replacing=True), "delete-replaced")) == [
        f" -- toy:index:Thing kept retained, not deleted (id {kept.id})"
    ]
    # What a refresh did not find is not there any more, whatever the program says.
    assert shown((RefreshStep("refresh", kept, kept), "delete")) == [" -  toy:index:Thing kept deleted"]
    lines: list[str] = []
    display = Display(lines.append, stack="dev")
    display.start("destroy", preview=True)
    Events([display], clock=lambda: 0).outputs(DeleteStep("delete", kept), "delete", planning=True)
    assert lines[2:] == [f" -  toy:index:Thing kept retain, not delete (id {kept.id})"]


def test_outputs_and_counts_are_written_as_pulumi_writes_them() -> None:
    """The blocks below were printed by Pulumi 3.259."""
    lines: list[str] = []
    display = Display(lines.append, stack="dev")
    display.start("up", preview=False)
    outputs = {"name": "web", "b": {"z": "198.18.1.2", "l": [1, True], "a": "[secret]"}}
    display.end(
        {"create": 1, "delete": 1, "replace": 1, "same": 1}, outputs, preview=False, seconds=4.2, failed=False
    )
    wanted = """
Outputs:
    b   : {
        a: [secret]
        l: [
            [0]: 1
            [1]: true
        ]
        z: "198.18.1.2"
    }
    name: "web"

Resources:
    + 1 created
    - 1 deleted
    +-1 replaced
    3 changes. 1 unchanged

Duration: 4s
"""
    assert lines[2:] == wanted.splitlines()
    del lines[:]
    display.end({"create": 3}, {"x": UNKNOWN_STRING}, preview=True, seconds=1, failed=False)
    assert lines == ["", "Outputs:", "    x: [unknown]", "", "Resources:", "    + 3 to create"]


def test_components_are_displayed_when_created() -> None:
    component = ResourceState("urn:pulumi:dev::p::c:c:C::box", "c:c:C")
    assert shown((CreateStep("create", None, component), "create")) == [" +  c:c:C box created"]
    assert shown((SameStep("same", component, component), "same")) == []


def test_diagnostics_are_displayed_with_their_resource() -> None:
    lines: list[str] = []
    events = Events([Display(lines.append, stack="dev")], clock=lambda: 0)
    events.diagnostic("error", "one\ntwo", thing("a").urn)
    events.diagnostic("debug", "never")
    events.diagnostic("info", "never", ephemeral=True)
    events.failed(CreateStep("create", None, thing("b")), 0)
    assert lines == ["    toy:index:Thing (a): error: one", "    two", " +  toy:index:Thing b failed"]


def test_events_have_pulumis_format() -> None:
    found: list[dict[str, Any]] = []
    events = Events([found.append], clock=lambda: 7.9)
    step = UpdateStep("update", thing("a"), thing("a", protect=True), diffs=("n",), detailed={"n": "add"})
    events.prelude({"k": "[secret]"})
    events.pre(step, planning=True)
    events.summary({"update": 1}, seconds=1.5, preview=True, corrupt=False, result="succeeded")
    events.cancel()
    assert [(event["sequence"], event["timestamp"]) for event in found] == [(0, 7), (1, 7), (2, 7), (3, 7)]
    metadata = found[1]["resourcePreEvent"]["metadata"]
    assert metadata["detailedDiff"] == {"n": {"diffKind": "add", "inputDiff": False}}
    assert (metadata["diffs"], metadata["new"]["protect"], found[1]["resourcePreEvent"]["planning"]) == (
        ["n"],
        True,
        True,
    )
    assert found[2]["summaryEvent"]["resourceChanges"] == {"update": 1}
