"""Ansible: a task that reads the servers with one GET, beside an empty module and, where it is installed,
hetzner.hcloud's.

All ask the same local stub. What a task costs is the difference between a play of many and a play of few, so
that neither the start of ansible-playbook counts nor what is loaded once. What the first task loads is the
difference between a play of that task alone and one of an action that does nothing.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks.measure import Ratio, cpu_seconds

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
TASKS = 40
FEW = 5
ROUNDS = 5
FIRST_AT_MOST = 0.38  # CPU seconds above an empty action

EMPTY = """from ansible.module_utils.basic import AnsibleModule

AnsibleModule(argument_spec={}).exit_json(changed=False)
"""

NOTHING = """from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {"changed": False}
"""

# The answer of both APIs: there is no server.
ANSWER: dict[str, Any] = {
    "data": [],
    "next_cursor": None,
    "servers": [],
    "meta": {"pagination": {"page": 1, "per_page": 50, "next_page": None}},
}


class _Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the second part of each answer waits 40 ms

    def do_GET(self) -> None:
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _stub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def ratios(tasks: int = TASKS, rounds: int = ROUNDS) -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder, _stub() as url:
        home = Path(folder)
        plugins = home / "ansible_collections" / "bench" / "bench" / "plugins"
        for folder_name, name, text in (
            ("modules", "empty", EMPTY),
            ("modules", "nothing", ""),
            ("action", "nothing", NOTHING),
        ):
            (plugins / folder_name).mkdir(parents=True, exist_ok=True)
            (plugins / folder_name / f"{name}.py").write_text(text)
        kinds: dict[str, dict[str, Any]] = {
            "empty": {"bench.bench.empty": {}},
            "ours": {"hosting.cloud.server_info": {"api_key": f"vk_live_{'0' * 32}", "base_url": url}},
        }
        if _has_hcloud():
            kinds["hcloud"] = {"hetzner.hcloud.server_info": {"api_token": "x" * 64, "api_endpoint": url}}
        plays = {
            (kind, count): _play(home, kind, task, count)
            for kind, task in kinds.items()
            for count in (FEW, FEW + tasks)
        }
        plays["ours", 1] = _play(home, "ours", kinds["ours"], 1)
        plays["nothing", 1] = _play(home, "nothing", {"bench.bench.nothing": {}}, 1)
        best = dict.fromkeys(plays, float("inf"))
        for _ in range(rounds):
            for key, play in plays.items():
                best[key] = min(best[key], cpu_seconds(partial(_run, home, play)))
        cost = {kind: (best[kind, FEW + tasks] - best[kind, FEW]) / tasks for kind in kinds}
        yield Ratio("a task of server_info", cost["ours"], "an empty module", cost["empty"])
        first, nothing = best["ours", 1], best["nothing", 1]
        above = f"{first - nothing:.2f} s above it, at most {FIRST_AT_MOST}"
        yield Ratio("a play of one task of server_info", first, "a play of an empty action", nothing, above)
        if "hcloud" in cost:
            yield Ratio("a task of server_info", cost["ours"], "hetzner.hcloud's server_info", cost["hcloud"])


def _has_hcloud() -> bool:
    listed = subprocess.run(
        [str(BIN / "ansible-galaxy"), "collection", "list", "hetzner.hcloud", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.returncode == 0 and "hetzner.hcloud" in listed.stdout


def _play(home: Path, kind: str, task: dict[str, Any], count: int) -> Path:
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": [task] * count,
    }
    file = home / f"{kind}-{count}.yml"
    file.write_text(yaml.safe_dump([play]))
    return file


def _run(home: Path, play: Path) -> None:
    paths = [str(ROOT), str(home), *filter(None, [os.environ.get("ANSIBLE_COLLECTIONS_PATH")])]
    environ = {
        **os.environ,
        "HOME": str(home),
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(paths),
        "ANSIBLE_LOCALHOST_WARNING": "0",
    }
    done = subprocess.run(
        [str(BIN / "ansible-playbook"), str(play)],
        env=environ,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
