"""Comments and issues of both services, against a stand-in for their APIs."""

import re

import pytest
from forge import Forge, ForgeError, forge

from tests.gitops.forge_server import Repository

MARKER = "<!-- hosting-pipeline prod "


@pytest.fixture
def service_client(service: Repository, monkeypatch: pytest.MonkeyPatch) -> Forge:
    for name in ("GITHUB_TOKEN", "GITLAB_TOKEN", "FORGE_USER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in service.environ().items():
        monkeypatch.setenv(name, value)
    found = forge()
    assert found is not None
    return found


def test_one_comment_is_replaced_beside_many_others(service: Repository, service_client: Forge) -> None:
    for number in range(150):
        service.comment(7, f"comment {number}", author="alice")
    service.comment(8, f"{MARKER}elsewhere")
    service_client.replace_comment("7", MARKER, f"{MARKER}first")
    service_client.replace_comment("7", MARKER, f"{MARKER}second")
    assert service.of(7)[150:] == [f"{MARKER}second"]
    service.comment(7, f"{MARKER}of a job that ran at the same time")
    service_client.replace_comment("7", MARKER, f"{MARKER}third")
    assert service.of(7)[150:] == [f"{MARKER}third"]
    assert service.of(8) == [f"{MARKER}elsewhere"]


def test_texts_of_other_people_do_not_count(service: Repository, service_client: Forge) -> None:
    service.comment(7, f"{MARKER}forged", author="alice")
    assert service_client.comment_bodies("7", MARKER) == []
    service_client.replace_comment("7", MARKER, f"{MARKER}ours")
    assert service.of(7) == [f"{MARKER}forged", f"{MARKER}ours"]
    assert service_client.comment_bodies("7", MARKER) == [f"{MARKER}ours"]


def test_only_who_may_write_approves(service: Repository, service_client: Forge) -> None:
    service.writers = {"alice"}
    for author, text in (
        ("alice", "/approve abc"),
        ("alice", "I would not /approve def"),
        ("mallory", "/approve 666"),
        ("alice", " /approve  two \n"),
    ):
        service.comment(7, text, author=author)
    assert service_client.approvals("7", "/approve") == {"abc", "two"}
    assert service_client.approvals("8", "/approve") == set()


def test_an_issue_is_opened_changed_and_closed(service: Repository, service_client: Forge) -> None:
    service_client.report_issue(MARKER, "title", f"{MARKER}nothing", is_open=False)
    assert service.issues == {}
    for text in ("one", "two"):
        service_client.report_issue(MARKER, "title", f"{MARKER}{text}", is_open=True)
    (issue,) = service.issues.values()
    assert (issue["title"], issue["text"], issue["open"]) == ("title", f"{MARKER}two", True)
    service_client.report_issue(MARKER, "title", f"{MARKER}three", is_open=False)
    (issue,) = service.issues.values()
    assert (issue["text"], issue["open"]) == (f"{MARKER}three", False)
    service_client.report_issue(MARKER, "title", f"{MARKER}four", is_open=True)
    assert [issue["open"] for issue in service.issues.values()] == [False, True]


def test_pull_requests_of_a_commit(service: Repository, service_client: Forge) -> None:
    service.merged["abc"] = [3, 4]
    assert service_client.pull_requests_of("abc") == ["3", "4"]
    assert service_client.pull_requests_of("def") == []


def test_a_token_that_may_not_is_one_line(
    service: Repository, service_client: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    service_client.http.headers.update({"Authorization": "Bearer wrong", "PRIVATE-TOKEN": "wrong"})
    with pytest.raises(ForgeError, match=re.escape("401")) as refused:
        service_client.replace_comment("7", MARKER, MARKER)
    assert "Next: check the token's permissions" in str(refused.value)
    assert "\n" not in str(refused.value)
