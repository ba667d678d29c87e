"""What reviewers read, and the digest that a merge compares."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan import Change, Plan, Run, Stop
from playbook import Playbook
from report import LIMIT, changes_table, code, digest_of, report_text, summary_of
from stack import Stack

ROWS = st.lists(
    st.builds(
        Change,
        st.sampled_from(["create", "update", "delete"]),
        st.text(max_size=5),
        st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
    ),
    max_size=5,
)


@given(ROWS, st.randoms())
def test_the_digest_does_not_depend_on_the_order(rows: list[Change], random: Any) -> None:
    mixed = list(rows)
    random.shuffle(mixed)
    assert digest_of([Plan(rows)]) == digest_of([Plan(mixed)]) == digest_of([Plan(rows[:1]), Plan(rows[1:])])


@given(ROWS, ROWS)
def test_the_digest_tells_different_changes_apart(one: list[Change], other: list[Change]) -> None:
    def facts(rows: list[Change]) -> list[str]:
        return sorted(json.dumps(row.facts, sort_keys=True) for row in rows)

    assert (digest_of([Plan(one)]) == digest_of([Plan(other)])) == (facts(one) == facts(other))


def preview(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, key: str = "vk_live_x", **content: Any) -> Plan:
    """The plan from what `pulumi preview --json` prints."""
    (tmp_path / "preview.json").write_text(json.dumps({"steps": [], "diagnostics": [], **content}))
    (tmp_path / "pulumi").write_text(f"#!/bin/sh\ncat {tmp_path}/preview.json\n")
    (tmp_path / "pulumi").chmod(0o755)
    monkeypatch.setenv("PULUMI", str(tmp_path / "pulumi"))
    return Stack("prod").plan({"HOSTING_API_KEY": key})


def step(op: str, type: str = "hosting:index:Server", name: str = "web", **inputs: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:prod::shop::{type}::{name}"
    outputs = {"priceMonthly": "5.00", "charged": "5.00", "nextDueAt": "2026-12-01T00:00:00Z"}
    return {"op": op, "urn": urn, "newState": {"type": type, "inputs": inputs, "outputs": outputs}}


def test_an_object_that_has_only_ended_is_no_change(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may end between the review and the merge, and no merge revives it."""
    ended = step("update", "hosting:index:Domain", "shop", privacy=True)
    ended["oldState"] = json.loads(json.dumps(ended["newState"]))
    assert len(preview(tmp_path, monkeypatch, steps=[ended]).changes) == 1
    ended["oldState"]["outputs"]["status"] = "expired"
    assert preview(tmp_path, monkeypatch, steps=[ended]).changes == []
    ended["newState"]["inputs"]["autoRenew"] = True
    assert len(preview(tmp_path, monkeypatch, steps=[ended]).changes) == 1


def test_an_object_that_is_gone_is_no_change(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a dynamic resource, whose update has no diff. A preview with a test key does not show it at all."""
    gone = step("update", "pulumi-python:dynamic/hosting:Server", notes="a")
    gone["oldState"] = json.loads(json.dumps(gone["newState"]))
    line = "web: warning: server 20001 (web) is gone from the account, and the state still has it. Next: x"
    said = [{"severity": "info", "message": line}]
    found = preview(tmp_path, monkeypatch, steps=[gone], diagnostics=said)
    assert (found.changes, found.warnings) == ([], [line.replace("warning: ", "")])
    gone["newState"]["inputs"]["notes"] = "b"
    assert len(preview(tmp_path, monkeypatch, steps=[gone], diagnostics=said).changes) == 1


def test_drift_in_the_state_is_shown(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that failed records what the account has as outputs; the inputs stay as they are."""
    drifted = step("update", notes="a")
    drifted["oldState"] = json.loads(json.dumps(drifted["newState"]))
    drifted["oldState"]["outputs"]["notes"] = "by hand"
    drifted["detailedDiff"] = {"notes": {"inputDiff": False}}
    (change,) = preview(tmp_path, monkeypatch, steps=[drifted]).changes
    assert change.fields == {"notes": ("by hand", "a")}


def test_a_renewal_is_beside_the_review(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native resources name themselves by their URN, dynamic ones by their name in front of the line."""
    renewed = step("update", keepPaid="7d")
    renewed["oldState"] = json.loads(json.dumps(renewed["newState"]))
    line = "will charge 5.00 EUR (server web, 1 month from 2026-12-01T00:00:00Z); run total 5.00 EUR"
    urn = {"severity": "info", "urn": renewed["urn"], "message": line}
    named = {"severity": "info", "message": f"web: {line}"}
    for said, differs in ((urn, {"detailedDiff": {"keepPaid": {}}}), (named, {})):
        found = preview(tmp_path, monkeypatch, steps=[{**renewed, **differs}], diagnostics=[said])
        assert (found.changes, str(found.renewals)) == ([], "5.00")
    both = {**renewed, "detailedDiff": {"keepPaid": {}, "password": {}}}
    assert len(preview(tmp_path, monkeypatch, steps=[both], diagnostics=[urn]).changes) == 1
    changed = json.loads(json.dumps(renewed))
    changed["newState"]["inputs"]["notes"] = "other"
    (change,) = preview(tmp_path, monkeypatch, steps=[changed], diagnostics=[urn]).changes
    assert set(change.fields) == {"notes"}


def test_a_renewal_of_a_playbook_is_beside_the_review(monkeypatch: pytest.MonkeyPatch) -> None:
    renewal: dict[str, Any] = {
        "before": {"renewal": {"paid_until": "2026-12-01"}},
        "after": {"renewal": {"months": 1}},
    }
    notes = {side: {**row, "notes": side} for side, row in renewal.items()}
    report = {
        "changes": [{"task": "web", "diff": [diff]} for diff in (renewal, notes)],
        "failures": [],
        "priced": [{"action": "renew", "charge": "5.00"}, {"action": "create", "charge": "7.00"}],
    }

    def play(self: Playbook, environ: Any, file: Path, *arguments: str) -> Run:
        file.write_text(json.dumps(report))
        return Run(3, "")

    monkeypatch.setattr(Playbook, "play", play)
    plan = Playbook("site.yml").plan({})
    assert ([change.fields for change in plan.changes], str(plan.renewals)) == (
        [{"notes": ("before", "after")}],
        "5.00",
    )


def test_prices_and_the_provider_of_a_resource_are_not_in_the_digest(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = step("create", tariffId=1, __provider="x"), step("create", tariffId=1, __provider="y")
    other["newState"]["outputs"]["priceMonthly"] = "6.00"
    plans = [preview(tmp_path, monkeypatch, steps=[row]) for row in (one, other)]
    assert digest_of(plans[:1]) == digest_of(plans[1:])
    another = preview(tmp_path, monkeypatch, steps=[step("create", tariffId=2)])
    assert digest_of([another]) != digest_of(plans[:1])


def test_a_replacement_is_one_change(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi's CLI writes one step, the offline engine three."""
    three = [step(op, os="debian-13") for op in ("create-replacement", "replace", "delete-replaced")]
    one, other = (preview(tmp_path, monkeypatch, steps=steps) for steps in (three[1:2], three))
    assert summary_of([one]) == summary_of([other]) == "1 to replace"
    assert digest_of([one]) == digest_of([other])


@pytest.mark.parametrize(
    "content",
    [
        {"config": {"hosting:apiKey": "[secret]"}},
        {"config": {"hosting:store": "redis://team:canary@store.example.com"}},
        {"steps": [step("create", "pulumi:providers:hosting", "own", apiKey="[secret]")]},
    ],
)
def test_a_key_that_the_state_would_hold_is_refused(
    content: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stop, match="an API key or password is stored with the stack") as caught:
        preview(tmp_path, monkeypatch, **content)
    assert "canary" not in str(caught.value)
    for store in ("[secret]", "redis://store.example.com"):
        preview(tmp_path, monkeypatch, config={"hosting:store": store})


def test_what_a_test_key_may_not_read_is_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = step("create", "hosting:index:WebhookSubscription", "news", url="https://a.example")
    plan = preview(tmp_path, monkeypatch, "vk_test_x", steps=[hook])
    assert plan.unchecked == ["WebhookSubscription news: event types"]
    assert preview(tmp_path, monkeypatch, "vk_live_x", steps=[hook]).unchecked == []


def test_only_what_changes_is_shown(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [step("same", name="old", notes="a"), step("update", notes="b")]
    plan = preview(tmp_path, monkeypatch, steps=steps)
    shown = "\n".join(changes_table([plan]))
    assert "web" in shown
    assert "old" not in shown
    assert summary_of([plan]) == "1 to update"
    assert summary_of([Plan()]) == "nothing changes"
    assert changes_table([Plan()]) == []


def test_what_a_preview_warns_of_is_not_folded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of a server that is gone has no other sign."""
    said = [
        {"severity": "info", "message": "web: would charge 5.00 EUR"},
        {"severity": "info", "message": "mail: warning: server 20002 (mail) is gone"},
        {"severity": "warning", "message": "warning: server 20003 (db) is gone"},
        {"severity": "warning", "message": "warning: closed to this test key"},
    ]
    plan = preview(tmp_path, monkeypatch, diagnostics=said)
    assert changes_table([plan]) == [
        "- Warning: `mail: server 20002 (mail) is gone`",
        "- Warning: `server 20003 (db) is gone`",
    ]


def test_long_details_lose_their_beginning() -> None:
    text = report_text(["head"], [("Run", "first " + "x" * LIMIT + " last"), ("Other", "short")])
    assert text.startswith("head")
    assert len(text) <= LIMIT
    assert " last\n" in text
    assert "first x" not in text
    assert "characters before this are left out" in text
    assert "short" in text


def test_many_changes_fit_too() -> None:
    head = ["head", *(f"| row {number} |" for number in range(20_000))]
    text = report_text(head, [("Run", "y" * LIMIT)])
    assert len(text) <= LIMIT
    assert "more changes than a comment can hold" in text


def test_output_cannot_end_its_block_nor_ping_anybody() -> None:
    text = report_text(["head"], [("Run", "```\n# not a heading\n````")])
    assert text.count("`````") == 2
    assert code("a|b `c` @everyone <img>") == "`a\\|b 'c' @everyone <img>`"


def test_secrets_of_the_job_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_LIVE_KEY", "vk_live_Zebra4711\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "Zebra-4712")
    monkeypatch.setenv("HOSTING_STORE", "redis://:Zebra-4713@store")
    text = report_text(["vk_live_Zebra4711"], [("Run", "Zebra-4712, redis://:Zebra-4713@store")])
    assert "Zebra" not in text
    assert text.count("[redacted]") == 3
