"""Comments, issues and pull requests of GitHub and GitLab: what pipeline.py needs of them.

On GitHub the job's ``GITHUB_TOKEN`` is enough (``pull-requests: write``, ``issues: write``). On GitLab,
``GITLAB_TOKEN`` is a project access token with the scope ``api``: the job's own token may not comment.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

PER_PAGE = 100
WRITERS = ("write", "maintain", "admin")
DEVELOPER = 30
"""GitLab's access level of those who may push."""


class ForgeError(Exception):
    """The service refused: one line."""


@dataclass(frozen=True)
class Names:
    """Paths and fields of one service. ``{}`` is a number, an id or a commit."""

    comments: str
    comment: str
    pull_requests: str
    edit: str
    number: str
    issue_text: str
    author: tuple[str, str]
    access: str
    closed: Mapping[str, str]
    open: str


GITHUB = Names(
    comments="issues/{}/comments",
    comment="issues/comments/{1}",
    pull_requests="commits/{}/pulls",
    edit="PATCH",
    number="number",
    issue_text="body",
    author=("user", "login"),
    access="collaborators/{1}/permission",
    closed={"state": "closed"},
    open="open",
)
GITLAB = Names(
    comments="merge_requests/{}/notes",
    comment="merge_requests/{0}/notes/{1}",
    pull_requests="repository/commits/{}/merge_requests",
    edit="PUT",
    number="iid",
    issue_text="description",
    author=("author", "username"),
    access="members/all/{0}",
    closed={"state_event": "close"},
    open="opened",
)


class Forge:
    """One repository. Only texts of ``author`` count: anybody may write a comment that looks like ours."""

    def __init__(self, names: Names, url: str, headers: Mapping[str, str], author: str) -> None:
        self.names, self.author = names, author
        self.http = httpx.Client(
            base_url=url, headers=headers, timeout=30, transport=httpx.HTTPTransport(retries=3)
        )

    def replace_comment(self, number: str, marker: str, text: str) -> None:
        """One comment that begins with the marker: the first is changed, further ones are deleted."""
        found = [row["id"] for row in self._comments(number, marker)]
        if not found:
            self._call("POST", self.names.comments.format(number), {"body": text})
            return
        self._call(self.names.edit, self.names.comment.format(number, found[0]), {"body": text})
        for further in found[1:]:
            self._call("DELETE", self.names.comment.format(number, further))

    def comment_bodies(self, number: str, marker: str) -> list[str]:
        return [row["body"] for row in self._comments(number, marker)]

    def approvals(self, number: str, command: str) -> set[str]:
        """What follows ``command`` in the comments of people who may write to the repository."""
        found: set[str] = set()
        for row in self._pages(self.names.comments.format(number)):
            said, _, what = row["body"].strip().partition(" ")
            if said == command and what.strip() not in found and self._may_write(row):
                found.add(what.strip())
        return found

    def _may_write(self, row: Mapping[str, Any]) -> bool:
        owner, name = self.names.author
        author = row.get(owner) or {}
        try:
            access = self._call("GET", self.names.access.format(author.get("id"), author.get(name)))
        except ForgeError:  # 404: not a member
            return False
        return access.get("permission") in WRITERS or int(access.get("access_level") or 0) >= DEVELOPER

    def pull_requests_of(self, commit: str) -> list[str]:
        """Numbers of the merged pull requests that brought the commit."""
        rows = self._pages(self.names.pull_requests.format(commit))
        return [str(row[self.names.number]) for row in rows if row.get("merged_at")]

    def report_issue(self, marker: str, title: str, text: str, *, is_open: bool) -> None:
        """Open an issue or change the open one; close it when there is nothing to report any more."""
        field = self.names.issue_text
        rows = self._pages("issues", state=self.names.open)  # on GitHub pull requests too
        ours = [row for row in rows if self._is_ours(row) and "pull_request" not in row]
        found = [row[self.names.number] for row in ours if str(row.get(field) or "").startswith(marker)]
        if found:
            state = {} if is_open else self.names.closed
            self._call(self.names.edit, f"issues/{found[0]}", {field: text, **state})
        elif is_open:
            self._call("POST", "issues", {"title": title, field: text})

    def _comments(self, number: str, marker: str) -> list[dict[str, Any]]:
        rows = self._pages(self.names.comments.format(number))
        return [row for row in rows if row["body"].startswith(marker) and self._is_ours(row)]

    def _is_ours(self, row: Mapping[str, Any]) -> bool:
        owner, name = self.names.author
        return bool((row.get(owner) or {}).get(name) == self.author)

    def _pages(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        page = 1
        while rows := self._call("GET", path, query={**query, "per_page": PER_PAGE, "page": page}):
            yield from rows
            if len(rows) < PER_PAGE:
                return
            page += 1

    def _call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        try:
            answer = self.http.request(method, path, json=body, params=query)
        except httpx.HTTPError as error:
            raise ForgeError(f"{method} {path}: {error}") from None
        if not answer.is_success:
            raise ForgeError(
                f"{method} {path}: {answer.status_code} {answer.text[:200]}. "
                "Next: check the token's permissions"
            )
        return answer.json() if answer.content else None


def forge() -> Forge | None:
    """The service that this job runs on; None elsewhere."""
    environ = os.environ
    if token := environ.get("GITHUB_TOKEN"):
        url = (
            f"{environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{environ['GITHUB_REPOSITORY']}/"
        )
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        return Forge(GITHUB, url, headers, environ.get("FORGE_USER") or "github-actions[bot]")
    if token := environ.get("GITLAB_TOKEN"):
        api, project = environ["CI_API_V4_URL"], quote(environ["CI_PROJECT_ID"], safe="")
        headers = {"PRIVATE-TOKEN": token}
        author = environ.get("FORGE_USER") or _gitlab_user(api, headers)
        return Forge(GITLAB, f"{api}/projects/{project}/", headers, author)
    return None


def _gitlab_user(api: str, headers: Mapping[str, str]) -> str:
    answer = httpx.get(f"{api}/user", headers=dict(headers), timeout=30)
    if not answer.is_success:
        raise ForgeError(f"GET user: {answer.status_code}. Next: give GITLAB_TOKEN the scope api")
    return str(answer.json()["username"])
