"""examples/gitops from the first pull request to the nightly report: a repository, both keys, both forges."""

import os
import re
from pathlib import Path

import pytest

from tests.gitops.conftest import CI
from tests.gitops.forge_server import BOT

PROJECT = "name: shop\nruntime: python\n"
MAIL = 'hosting.Server("mail", tariff_id=1, os="debian-12")\n'

ONE_SERVICE = pytest.mark.parametrize("service", ["github"], indirect=True)


def program(notes: str, more: str = "") -> dict[str, str]:
    """A server with these notes, and what else."""
    text = f"""import pulumi
import pulumi_hosting as hosting

web = hosting.Server("web", tariff_id=1, os="debian-12", notes={notes!r})
{more}
pulumi.export("ip", web.ip)
"""
    return {"__main__.py": text}


def begin(ci: CI) -> None:
    """The repository with the empty live stack, as it is set up once."""
    (ci.work / "Pulumi.yaml").write_text(PROJECT)
    assert ci.pulumi("stack", "init", "prod").returncode == 0
    ci.push("main", {".gitignore": "__pycache__\n"})


def digest(comment: str) -> str:
    found = re.match(r"<!-- hosting-pipeline prod digest=(\w+) -->", comment)
    assert found, comment
    return found[1]


@pytest.mark.slow
def test_from_the_first_pull_request_to_the_nightly_report(ci: CI) -> None:
    begin(ci)

    # A pull request: nothing but its comment.
    ci.push("web", program("first"))
    assert ci.job("pull-request", "web", PULL_REQUEST="1") == 0, ci.printed
    (first,) = ci.service.of(1)
    assert "## prod: 1 to create" in first
    assert (
        first.index("**Cost:** 5.00 EUR now, 5.00 EUR per month")
        < first.index("| Change |")
        < first.index("<details>")
    )
    assert "`Server web`" in first
    for check in (
        "rehearsal, without a key",
        "preview of prod, with a test key",
        "stack pr-1, in the sandbox",
    ):
        assert f"| {check} | passed: " in first
    assert ci.stacks() == ["prod"]
    assert (ci.living, ci.ledger()) == ([], [])

    # A further push replaces the comment, another person's text that looks like it stays.
    ci.service.comment(1, first, author="alice")
    ci.push("web", program("second", MAIL))
    assert ci.job("pull-request", "web", PULL_REQUEST="1") == 0, ci.printed
    second, other = ci.service.of(1)
    assert other == first
    assert "## prod: 2 to create" in second
    assert digest(first) != digest(second)

    # The merge applies what was reviewed; running the job again buys nothing.
    commit = ci.merge_branch("web", 1)
    assert ci.job("merge") == 0, ci.printed
    assert sorted(server["name"] for server in ci.living) == ["mail", "web"]
    assert [row["amount"] for row in ci.ledger()] == ["5.00", "5.00"]
    assert ci.job("merge") == 0, ci.printed
    assert len(ci.ledger()) == 2
    ci.compare()

    # A pull request whose changes are taken back: the comment says so.
    ci.push("notes", program("third", MAIL))
    # The limit is one of changes: it is less than the whole program costs, which a rehearsal creates.
    assert ci.job("pull-request", "notes", PULL_REQUEST="2", HOSTING_MAX_CHARGE="6.00") == 0, ci.printed
    (comment,) = ci.service.of(2)
    assert "## prod: 1 to update" in comment
    assert "`notes: second → third`" in comment
    assert "mail" not in comment.partition("<details>")[0]
    ci.push("notes", program("second", MAIL))
    assert ci.job("pull-request", "notes", PULL_REQUEST="2") == 0, ci.printed
    (comment,) = ci.service.of(2)
    assert "## prod: nothing changes" in comment

    # Merged with a change that no job has seen: nothing is applied, until a person says so.
    ci.push("notes", program("never reviewed", MAIL))
    ci.merge_branch("notes", 2)
    assert ci.job("merge") == 7
    assert "these are not the reviewed changes; nothing was changed" in ci.printed
    found = re.search(r"REVIEWED_DIGEST=(\w{64})", ci.printed)
    assert found
    assert {server["notes"].partition(" [")[0] for server in ci.living if server["name"] == "web"} == {
        "second"
    }
    assert ci.job("merge", REVIEWED_DIGEST=found[1]) == 0, ci.printed
    ci.compare()

    # Too expensive: nothing of it is bought.
    ci.push("big", program("never reviewed", MAIL + 'hosting.Server("db", tariff_id=2, os="debian-12")'))
    assert ci.job("pull-request", "big", PULL_REQUEST="3") == 0, ci.printed
    ci.merge_branch("big", 3)
    assert ci.job("merge", HOSTING_MAX_CHARGE="1.00") == 1
    assert "1.00" in ci.printed
    assert len(ci.ledger()) == 2
    ci.push("main", program("never reviewed", MAIL))

    # Nights: nothing, then drift and a server bought by hand, then nothing again.
    assert ci.job("nightly") == 0, ci.printed
    assert ci.service.issues == {}
    web = next(server for server in ci.living if server["name"] == "web")
    ci.control("PATCH", f"/servers/{web['id']}", {"notes": "by hand"})
    assert ci.job("nightly") == 7, ci.printed
    (issue,) = ci.service.issues.values()
    assert "drift of prod | **found**" in issue["text"]
    assert "audit of the account | nothing found" in issue["text"]
    assert "Repair the drift of prod: `pulumi up --refresh --stack prod`" in issue["text"]
    assert ci.job("nightly", OTHER_STACKS="stagin") == 1, ci.printed
    (issue,) = ci.service.issues.values()
    assert "drift of prod | **found**" in issue["text"]
    assert "stack stagin cannot be exported: " in issue["text"]
    assert "remove:" not in issue["text"]
    forgotten = ci.order_by_hand("forgotten")
    assert ci.job("nightly") == 7, ci.printed
    (issue,) = ci.service.issues.values()
    assert f"\nserver  {forgotten}  forgotten  5.00 EUR\n" in issue["text"]
    assert 'To adopt each server: declare hosting.Server("NAME", adopt_id="ID", ...)\n' in issue["text"]
    assert "To adopt everything: pulumi-hosting import DIR --form dynamic\n" in issue["text"]
    ci.control("DELETE", f"/servers/{forgotten}")
    assert ci.job("merge") == 0, ci.printed
    ci.repair()
    assert ci.job("nightly") == 0, ci.printed
    (issue,) = ci.service.issues.values()
    assert not issue["open"]

    # A night after its paid time has an issue of its own, open until the server is paid again.
    ci.control("PATCH", f"/servers/{web['id']}", {"status": "suspended"})
    assert ci.job("nightly") == 7, ci.printed
    title = "prod: something has ended, or ends and is not paid for"
    (paid,) = [issue for issue in ci.service.issues.values() if issue["title"] == title]
    assert f"server {web['id']} (web) is suspended" in paid["text"]
    ci.control("PATCH", f"/servers/{web['id']}", {"status": "active"})
    assert ci.job("nightly") == 0, ci.printed
    assert not any(issue["open"] for issue in ci.service.issues.values())
    ci.compare(forgotten)
    assert commit != ci.git("rev-parse", "main")
    if path := os.environ.get("PIPELINE_LOG"):
        ci.write_log(Path(path))


@pytest.mark.slow
@ONE_SERVICE
@pytest.mark.parametrize("package", ["pulumi_hosting", "pulumi_hosting.native"])
def test_a_merge_renews_what_is_kept_paid_beside_the_review(ci: CI, package: str) -> None:
    begin(ci)
    kept = program("first")["__main__.py"].replace(")\n", ', auto_renew=False, keep_paid="7d")\n', 1)
    ci.push("web", {"__main__.py": kept.replace("import pulumi_hosting ", f"import {package} ")})
    assert ci.job("pull-request", "web", PULL_REQUEST="1") == 0, ci.printed
    ci.merge_branch("web", 1)
    assert ci.job("merge") == 0, ci.printed
    ci.control("POST", "/clock", {"advance": 25 * 86400})
    assert ci.job("merge", HOSTING_MAX_CHARGE="1.00") == 0, ci.printed
    assert "not renewed, though keep_paid asks for it" in ci.printed
    assert len(ci.ledger()) == 1
    assert ci.job("merge") == 0, ci.printed
    assert "## prod: nothing changes" in ci.printed
    assert "Beside the review: renewals up to 5.00, as keep_paid says." in ci.printed
    assert "**Cost:** 5.00 EUR now" in ci.printed
    assert "does not renew itself" not in ci.printed  # this run renews it
    assert [row["amount"] for row in ci.ledger()] == ["5.00", "5.00"]
    assert ci.job("merge") == 0, ci.printed
    assert "Beside the review" not in ci.printed
    assert len(ci.ledger()) == 2
    ci.compare()


@pytest.mark.slow
@ONE_SERVICE
def test_a_closed_pull_request_leaves_nothing(ci: CI) -> None:
    """Its job was cancelled between `up` and `destroy`, and once in the middle of a command."""
    begin(ci)
    ci.push("web", program("first"))
    sandbox = {"HOSTING_API_KEY": ci.test, "HOSTING_SCOPE": "pr-4", "HOSTING_MODE": "test"}
    assert ci.pulumi("stack", "init", "pr-4").returncode == 0
    assert ci.pulumi("up", "--yes", "--skip-preview", "--stack", "pr-4", **sandbox).returncode == 0
    lock = ci.state / ".pulumi" / "locks" / "organization" / "shop" / "pr-4" / "killed.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("{}")
    assert "locked" in ci.pulumi("destroy", "--yes", "--stack", "pr-4", **sandbox).stderr
    assert ci.job("closed", "web", PULL_REQUEST="4") == 0, ci.printed
    assert ci.stacks() == ["prod"]
    assert ci.job("closed", "web", PULL_REQUEST="4") == 0, ci.printed
    assert "there is no stack pr-4" in ci.printed
    assert (ci.living, ci.ledger()) == ([], [])


def test_a_merge_applies_what_was_reviewed(ci: CI) -> None:
    """The path that costs money, without the rehearsal and the sandbox."""
    begin(ci)
    ci.push("web", program("first"))
    assert ci.job("merge", "web") == 7
    assert (ci.living, ci.ledger()) == ([], [])
    assert "no review of changes was found for this commit; nothing was changed" in ci.printed
    found = re.search(r"REVIEWED_DIGEST=(\w{64})", ci.printed)
    assert found
    for author, code in (("alice", 7), (BOT[ci.service.service], 0)):
        ci.service.comment(1, f"<!-- hosting-pipeline prod digest={found[1]} -->", author=author)
        ci.service.merged[ci.git("rev-parse", "web")] = [1]
        assert ci.job("merge", "web") == code, ci.printed
    assert [server["name"] for server in ci.living] == ["web"]
    assert [row["amount"] for row in ci.ledger()] == ["5.00"]
    ci.compare()


def test_a_person_with_write_access_approves_by_a_comment(ci: CI) -> None:
    """Changes that no job has shown, approved on the pull request: by a stranger in vain."""
    begin(ci)
    ci.push("web", program("first"))
    ci.service.merged[ci.git("rev-parse", "web")] = [1]
    ci.service.comment(1, f"<!-- hosting-pipeline prod digest={'0' * 64} -->")
    ci.service.writers = {"alice"}
    assert ci.job("merge", "web") == 7
    assert "these are not the reviewed changes; nothing was changed" in ci.printed
    found = re.search(r"comment `(/approve \w{64})` on pull request 1", ci.printed)
    assert found
    for author, code in (("mallory", 7), ("alice", 0)):
        ci.service.comment(1, found[1], author=author)
        assert ci.job("merge", "web") == code, ci.printed
    assert [server["name"] for server in ci.living] == ["web"]
    assert [row["amount"] for row in ci.ledger()] == ["5.00"]
    ci.compare()


@ONE_SERVICE
@pytest.mark.parametrize(
    ("environ", "code", "message"),
    [
        ({"HOSTING_MAX_CHARGE": ""}, 2, "HOSTING_MAX_CHARGE is not set"),
        ({"HOSTING_LIVE_KEY": "vk_test_x"}, 2, "HOSTING_LIVE_KEY holds no live key"),
        ({"STACK": ""}, 2, "neither STACK nor PLAYBOOK is set"),
    ],
)
def test_settings_that_are_missing(ci: CI, environ: dict[str, str], code: int, message: str) -> None:
    begin(ci)
    assert ci.job("merge", **environ) == code
    assert message in ci.printed
    assert ci.ledger() == []


@ONE_SERVICE
def test_a_key_in_the_configuration_is_refused(ci: CI) -> None:
    begin(ci)
    ci.pulumi("config", "set", "hosting:apiKey", ci.live, "--secret", "--stack", "prod")
    ci.push("main", program("first"))
    assert ci.job("merge") == 1
    assert "an API key or password is stored with the stack (hosting:apiKey)" in ci.printed
    assert ci.ledger() == []


@pytest.mark.slow
@ONE_SERVICE
def test_what_a_test_key_may_not_read_is_no_failure(ci: CI) -> None:
    """A lookup that is closed to test keys: the merge needs a person, the pull request is not red."""
    begin(ci)
    ci.push("hooks", program("first", "hosting.get_webhooks()"))
    assert ci.job("pull-request", "hooks", PULL_REQUEST="6") == 0, ci.printed
    (comment,) = ci.service.of(6)
    assert digest(comment) == "none"
    assert "## prod: the changes are not known" in comment
    assert "| preview of prod, with a test key | `not checked with a test key` |" in comment
    assert "| stack pr-6, in the sandbox | `not checked with a test key` |" in comment
    ci.merge_branch("hooks", 6)
    assert ci.job("merge") == 7
    assert (ci.stacks(), ci.living, ci.ledger()) == (["prod"], [], [])


@pytest.mark.slow
@ONE_SERVICE
def test_a_preview_that_fails_is_in_the_comment(ci: CI) -> None:
    """The comment of the push before is replaced, so that no old digest stands beside new code."""
    begin(ci)
    ci.service.comment(7, f"<!-- hosting-pipeline prod digest={'0' * 64} -->")
    ci.push("web", program("first", 'hosting.Server("db", tariff_id=999, os="debian-12")'))
    assert ci.job("pull-request", "web", PULL_REQUEST="7") == 1
    (comment,) = ci.service.of(7)
    assert digest(comment) == "none"
    assert "| preview of prod, with a test key | **failed**: `" in comment
    assert "999" in comment.partition("<details>")[0]
    assert (ci.stacks(), ci.living, ci.ledger()) == (["prod"], [], [])


@pytest.mark.slow
@ONE_SERVICE
def test_a_fork_is_rehearsed_without_any_key(ci: CI, tmp_path: Path) -> None:
    begin(ci)
    ci.push("web", program("first"))
    summary = tmp_path / "summary.md"
    nothing = {"HOSTING_TEST_KEY": "", "HOSTING_LIVE_KEY": "", "PULUMI_CONFIG_PASSPHRASE": ""}
    assert ci.job("pull-request", "web", PULL_REQUEST="5", GITHUB_STEP_SUMMARY=str(summary), **nothing) == 0
    shown = re.search(r"rehearsal, without a key \| passed: `(.*)` \|", summary.read_text())
    assert shown
    assert shown[1].endswith("; rehearsal: everything as expected")
    assert "5.00" in shown[1]
    assert ci.service.requests == []
    assert (ci.living, ci.ledger()) == ([], [])
