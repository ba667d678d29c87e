"""Plays scripts of Ansible: each step is a run of ansible-playbook."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pulumi_hosting.emulator import Running
from tests.ansible.conftest import BIN, ansible_environ
from tests.transcripts.player import Player, without_secrets
from tests.transcripts.scripts import Script

_NOT_SHOWN = re.compile(r"invocation|exception|diff|openapi|_ansible.*")
_RESULT = re.compile(r"(?<==> )\{.*")
"""A result in the lines of a failed task; it is shown field by field below."""
_PLACE = re.compile(r"^(Origin: .*| *\d+ .*| +\^ column \d+|)\n", re.MULTILINE)
"""Where a task stands in the playbook that a script makes."""
Task = Mapping[str, Any]


class Playbooks(Player):
    """Plays of one task or more."""

    kept = "results"

    def __init__(self, script: Script, folder: Path, emulator: Running) -> None:
        super().__init__(script, folder, emulator)
        live, home = self.keys["live"], folder / "home"
        environ = ansible_environ(emulator, home, folder / "run")
        self.environ |= {**environ, "HOSTING_API_KEY": live, "COLUMNS": "120"}
        self._record = Path(environ["ANSIBLE_RECORD"])
        self._arguments: list[str] = []

    def _run(self, tasks: list[Task]) -> None:
        self._play(tasks, [])

    def _check(self, tasks: list[Task]) -> None:
        self._play(tasks, ["--check", "--diff"])

    def _play(self, tasks: list[Task], arguments: list[str]) -> None:
        variables = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
        play = {"hosts": "localhost", "gather_facts": False, "vars": variables}
        play["tasks"] = [{**dict(_task(task)), "ignore_errors": len(tasks) > 1} for task in tasks]
        (self.work / "site.yml").write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
        self._record.unlink(missing_ok=True)
        done = self._call([sys.executable, str(BIN / "ansible-playbook"), "site.yml", *arguments])
        asked = [
            json.dumps({name: without_secrets(given)}, ensure_ascii=False)
            for task in tasks
            for name, given in task.items()
        ]
        command = " ".join(["ansible-playbook", *arguments, *asked])
        output = _PLACE.sub("", _RESULT.sub("{…}", done.stdout + done.stderr))
        self.note(command, done.returncode, output, {**self._seen, **dict(self._results())})

    def _results(self) -> Iterator[tuple[str, Any]]:
        if not self._record.exists():
            return
        count = Counter[str]()
        for text in self._record.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            result = {name: value for name, value in line["result"].items() if not _NOT_SHOWN.fullmatch(name)}
            count[line["task"]] += 1
            number = count[line["task"]]
            yield (
                f"{line['task']} {number}" if number > 1 else line["task"],
                {"outcome": line["outcome"], **result},
            )


def _task(task: Task) -> Iterator[tuple[str, Any]]:
    """A task of a play: the names of our modules are short in scripts."""
    for name, given in task.items():
        yield "name", name
        yield f"hosting.cloud.{name}", given
