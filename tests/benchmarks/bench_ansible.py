"""Ansible: a task that reads the servers with one GET, beside an empty module and, where it is installed,
hetzner.hcloud's.

All ask the same local stub. What a task costs is the difference between a play of many and a play of few, so
that neither the start of ansible-playbook counts nor what is loaded once.
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

EMPTY = """from ansible.module_utils.basic import AnsibleModule

AnsibleModule(argument_spec={}).exit_json(changed=False)
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
        modules = home / "ansible_collections" / "bench" / "bench" / "plugins" / "modules"
        modules.mkdir(parents=True)
        (modules / "empty.py").write_text(EMPTY)
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
        best = dict.fromkeys(plays, float("inf"))
        for _ in range(rounds):
            for key, play in plays.items():
                best[key] = min(best[key], cpu_seconds(partial(_run, home, play)))
        cost = {kind: (best[kind, FEW + tasks] - best[kind, FEW]) / tasks for kind in kinds}
        first = best["ours", FEW] - best["empty", FEW] - FEW * (cost["ours"] - cost["empty"])
        note = f"loaded once per run: {first * 1000:.0f} ms"
        yield Ratio("a task of server_info", cost["ours"], "an empty module", cost["empty"], note)
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
