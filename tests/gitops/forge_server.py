"""A stand-in for the APIs of GitHub and GitLab: comments, issues, pull requests of one repository."""

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = {"github": "github-actions[bot]", "gitlab": "project_1_bot"}
TOKEN = "forge-token-Zebra-4711"


@dataclass
class Repository:
    """What the service holds. Numbers of pull requests and issues share one row, as on GitHub."""

    service: str
    url: str = ""
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    merged: dict[str, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def environ(self) -> dict[str, str]:
        """What a job of the service finds in its environment."""
        if self.service == "github":
            return {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": self.url, "GITHUB_REPOSITORY": "me/shop"}
        return {"GITLAB_TOKEN": TOKEN, "CI_API_V4_URL": self.url, "CI_PROJECT_ID": "1"}

    def of(self, number: int) -> list[str]:
        """The texts of the comments on a pull request, in order."""
        return [row["body"] for row in self.comments.values() if row["on"] == number]

    def comment(self, number: int, body: str, author: str = "") -> None:
        self.comments[next(self.numbers)] = {"on": number, "body": body, "by": author or BOT[self.service]}

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        if path == "/user":
            return 200, {"username": BOT["gitlab"]}
        path = re.sub(r"^/(repos/me/shop|projects/1)/", "", path)
        routes: list[tuple[str, Callable[..., tuple[int, Any]]]] = [
            (r"(?:issues|merge_requests)/(\d+)/(?:comments|notes)", self._comments),
            (r"(?:issues/comments|merge_requests/\d+/notes)/(\d+)", self._comment),
            (r"(?:commits|repository/commits)/(\w+)/(?:pulls|merge_requests)", self._merged),
            (r"collaborators/([^/]+)/permission|members/all/(\d+)", self._access),
            (r"issues", self._issues),
            (r"issues/(\d+)", self._issue),
        ]
        for pattern, handler in routes:
            if found := re.fullmatch(pattern, path):
                return handler(method, query, body, *found.groups())
        return 404, {"message": f"no {path}"}

    def _comments(self, method: str, query: dict[str, str], body: Any, number: str) -> tuple[int, Any]:
        if method == "POST":
            assert len(body["body"]) <= 65_536
            self.comment(int(number), body["body"])
            return 201, {}
        rows = [self._shown(id, row) for id, row in self.comments.items() if row["on"] == int(number)]
        return 200, _page(rows, query)

    def _comment(self, method: str, query: dict[str, str], body: Any, id: str) -> tuple[int, Any]:
        if method == "DELETE":
            del self.comments[int(id)]
            return 204, None
        if method != ("PATCH" if self.service == "github" else "PUT"):
            return 405, {}
        self.comments[int(id)]["body"] = body["body"]
        return 200, {}

    def _merged(self, method: str, query: dict[str, str], body: Any, commit: str) -> tuple[int, Any]:
        name = "number" if self.service == "github" else "iid"
        numbers = self.merged.get(commit, [])
        return 200, _page([{name: number, "merged_at": "2026-11-22T12:00:00Z"} for number in numbers], query)

    def _issues(self, method: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        text = "body" if self.service == "github" else "description"
        if method == "POST":
            number = next(self.numbers)
            self.issues[number] = {"title": body["title"], "text": body[text], "open": True}
            return 201, {}
        wanted = {"open": True, "opened": True}[query["state"]]
        name = "number" if self.service == "github" else "iid"
        rows = [
            {name: number, text: row["text"], **self._author(BOT[self.service])}
            for number, row in self.issues.items()
            if row["open"] == wanted
        ]
        return 200, _page(rows, query)

    def _issue(self, method: str, query: dict[str, str], body: Any, number: str) -> tuple[int, Any]:
        github = self.service == "github"
        row = self.issues[int(number)]
        row["text"] = body["body" if github else "description"]
        row["open"] = (body.get("state") != "closed") if github else (body.get("state_event") != "close")
        return 200, {}

    def _access(
        self, method: str, query: dict[str, str], body: Any, name: str | None, id: str | None
    ) -> tuple[int, Any]:
        known = name or next(one for one in self.people if str(_id_of(one)) == id)
        if self.service == "github":
            return 200, {"permission": "write" if known in self.writers else "read"}
        return (200, {"access_level": 30}) if known in self.writers else (404, {"message": "404 Not found"})

    @property
    def people(self) -> set[str]:
        return {row["by"] for row in self.comments.values()}

    def _shown(self, id: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"id": id, "body": row["body"], **self._author(row["by"])}

    def _author(self, name: str) -> dict[str, Any]:
        if self.service == "github":
            return {"user": {"login": name, "id": _id_of(name)}}
        return {"author": {"username": name, "id": _id_of(name)}}


def _id_of(name: str) -> int:
    return sum(name.encode())


def _page(rows: list[Any], query: dict[str, str]) -> list[Any]:
    size, page = int(query["per_page"]), int(query["page"])
    return rows[size * (page - 1) : size * page]


@contextmanager
def serving(service: str) -> Iterator[Repository]:
    """The service at an address of this machine, ``github`` or ``gitlab``."""
    repository = Repository(service)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "") + self.headers.get("PRIVATE-TOKEN", "")
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, answer = 401, None
            if TOKEN in given:
                status, answer = repository.answer(self.command, parts.path, query, body)
            text = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the test looks at the repository."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    repository.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield repository
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
