"""The same pipeline with a playbook: check run with a test key, run with a live key, nightly check run."""

import re

import pytest

from tests.gitops.conftest import CI, SCRIPT

SITE = (SCRIPT.parent / "awx" / "site.yml").read_text(encoding="utf-8")


def playbook(notes: str) -> dict[str, str]:
    return {"site.yml": SITE.replace("default('front end')", f"default('{notes}')")}


@pytest.mark.slow
@pytest.mark.parametrize("service", ["github"], indirect=True)
def test_a_playbook_from_the_pull_request_to_the_nightly_report(ci: CI) -> None:
    environ = ci.playbook()
    ci.push("main")
    ci.push("web", playbook("first"))
    assert ci.job("pull-request", "web", PULL_REQUEST="1", **environ) == 0, ci.printed
    (comment,) = ci.service.of(1)
    assert "## site.yml: 1 to change" in comment
    assert "`The web server`" in comment
    assert "| preview of site.yml, with a test key | passed: `1 to change` |" in comment
    assert "(none) → first" in comment
    assert (ci.living, ci.ledger(), ci.requested("POST")) == ([], [], [])

    ci.merge_branch("web", 1)
    assert ci.job("merge", HOSTING_MAX_CHARGE="1.00", **environ) == 1
    assert ci.ledger() == []
    assert ci.job("merge", **environ) == 0, ci.printed
    assert ci.job("merge", **environ) == 0, ci.printed
    (web,) = ci.living
    assert [row["amount"] for row in ci.ledger()] == ["5.00"]

    ci.push("notes", playbook("second"))
    ci.merge_branch("notes", 2)
    assert ci.job("merge", **environ) == 7
    assert "no review of changes was found for this commit" in ci.printed
    assert ci.living == [web]
    found = re.search(r"REVIEWED_DIGEST=(\w{64})", ci.printed)
    assert found
    assert ci.job("merge", REVIEWED_DIGEST=found[1], **environ) == 0, ci.printed

    assert ci.job("nightly", **environ) == 0, ci.printed
    ci.control("PATCH", f"/servers/{web['id']}", {"notes": "by hand"})
    assert ci.job("nightly", **environ) == 7, ci.printed
    (issue,) = ci.service.issues.values()
    assert "| drift of site.yml | **found** |" in issue["text"]
    assert "| audit of the account | nothing found |" in issue["text"]
    assert ci.job("merge", **environ) == 7  # the repair is a change that was not reviewed
    found = re.search(r"REVIEWED_DIGEST=(\w{64})", ci.printed)
    assert found
    assert ci.job("merge", REVIEWED_DIGEST=found[1], **environ) == 0, ci.printed

    # The last check run knows everything that is on the account, and finds no difference.
    assert ci.job("nightly", **environ) == 0, ci.printed
    assert [issue["open"] for issue in ci.service.issues.values()] == [False]
    assert [server["id"] for server in ci.living] == [web["id"]]
    assert [row["amount"] for row in ci.ledger()] == ["5.00"]
