"""``pulumi-hosting rehearse --json | --markdown | --junit``: one outcome in three forms."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main
from pulumi_hosting.cli.rehearse_formats import as_junit, markdown
from pulumi_hosting.rehearsal import runner
from pulumi_hosting.rehearsal.outcome import Loss, ProgramCost, RehearsalOutcome, StepOutcome

COST = ProgramCost(Decimal("19.00"), Decimal("8.08"), Decimal("7.00"), "EUR")
GOOD = StepOutcome("preview", True, "shows the planned resources", {"create": 2}, 13, 0.5)
BAD = StepOutcome("destroy", False, "removes all", {}, 9, 0.25, ("server 20001 is live <&\x1b[0m",))


def outcome(*steps: StepOutcome) -> RehearsalOutcome:
    return RehearsalOutcome("shop", "offline", "spec", list(steps), COST)


def test_markdown_says_the_conclusion_and_the_cost_first() -> None:
    lines = markdown(outcome(GOOD, BAD)).splitlines()
    assert lines[0] == "**Rehearsal:** not as expected: destroy (2 steps, engine offline)"
    assert lines[2] == (
        "**Cost:** 19.00 EUR at the first up, 8.08 EUR per month, 7.00 EUR refunded if destroyed at once"
    )
    assert lines[4] == "**destroy**: removes all: no change"
    assert "| ok | preview | shows the planned resources: 2 create | 13 |" in lines
    assert "everything as expected (1 steps" in markdown(outcome(GOOD))


def test_junit_has_a_case_for_each_step() -> None:
    (suite,) = ElementTree.fromstring(as_junit(outcome(GOOD, BAD)))  # noqa: S314  # written just now
    assert (suite.get("tests"), suite.get("failures"), suite.get("time")) == ("2", "1", "0.750")
    assert {item.get("name"): item.get("value") for item in suite.iter("property")} == {
        **{"program": "shop", "engine": "offline", "dialect": "spec"},
        **{"first_up": "19.00", "per_month": "8.08", "refunded_at_once": "7.00", "currency": "EUR"},
    }
    assert [case.get("name") for case in suite.iter("testcase")] == ["preview", "destroy"]
    (failure,) = suite.iter("failure")
    assert (failure.get("message"), failure.text) == (
        "removes all: no change",
        "server 20001 is live <&[0m",
    )


END = datetime(2027, 11, 24, 8, tzinfo=UTC)
LOSS = Loss("domain", "70001", "shop.com", "expired", END, {"nightly job": 14, "domain.expiring": 30})


def test_losses_follow_the_cost() -> None:
    found = outcome(GOOD)
    found.losses = [LOSS, Loss("server", "20001", "web", "suspended", END, {})]
    lines = markdown(found).splitlines()
    assert lines[0] == (
        "**Rehearsal:** everything as expected; would be lost: domain 70001 (shop.com), server 20001 (web) "
        "(1 steps, engine offline)"
    )
    assert lines[4:8] == [
        "Would be lost:",
        "",
        "- `2027-11-24: domain 70001 (shop.com) is expired; announced by domain.expiring 30, nightly job 14 "
        "days before`",
        "- `2027-11-24: server 20001 (web) is suspended; not announced`",
    ]
    assert found.facts()["losses"][0] == {  # type: ignore[index]  # it is a list
        **{"kind": "domain", "id": "70001", "name": "shop.com", "became": "expired"},
        **{"at": "2027-11-24T08:00:00Z", "announced": {"nightly job": 14, "domain.expiring": 30}},
    }


@pytest.mark.parametrize(
    ("steps", "losses", "code"), [((GOOD,), [], 0), ((GOOD, BAD), [LOSS], 1), ((GOOD,), [LOSS], 7)]
)
def test_json_is_alone_on_standard_output(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    steps: tuple[StepOutcome, ...],
    losses: list[Loss],
    code: int,
) -> None:
    def run(rehearsal: runner.Rehearsal) -> RehearsalOutcome:
        rehearsal.report("ok     preview")
        found = outcome(*steps)
        found.losses = losses
        return found

    monkeypatch.setattr(runner.Rehearsal, "run", run)
    written = tmp_path / "junit.xml"
    answer = CliRunner().invoke(
        main, ["rehearse", str(tmp_path), "--engine", "offline", "--json", "--junit", str(written)]
    )
    assert answer.exit_code == code, answer.output
    facts = json.loads(answer.stdout)
    assert (facts["passed"], facts["cost"]["first_up"]) == (code != 1, "19.00")
    assert len(facts["losses"]) == len(losses)
    assert [step["title"] for step in facts["steps"]] == [step.title for step in steps]
    assert answer.stderr == "ok     preview\n"
    assert ElementTree.parse(written).find("testsuite") is not None  # noqa: S314  # written by the command
    missing = str(tmp_path / "missing" / "junit.xml")
    answer = CliRunner().invoke(main, ["rehearse", str(tmp_path), "--engine", "offline", "--junit", missing])
    assert answer.exit_code == 2
    assert answer.stderr == f"error: {missing}: No such file or directory. Next: name another file\n"
