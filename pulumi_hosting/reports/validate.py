"""All mistakes of a Pulumi program at once, without an account: it runs once, in a process of its own. Of a
program in another language than Python, what ``kept_servers`` reads.

Nothing is asked of Pulumi's engine, of a provider or of the service: every declaration is checked as a
preview checks it before it asks the account, and the program goes on.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pulumi_hosting.offline.errors import OfflineError
from pulumi_hosting.offline.storage.project import Project, StackConfig, find_python, load_project, runtime_of
from pulumi_hosting.provider.mistake import Mistake
from pulumi_hosting.provider.stack_settings import SETTINGS
from pulumi_hosting.reports import kept_servers
from pulumi_hosting.reports.report import FOUND, CannotAnswer, Report, Unusable

_ACCOUNT = {SETTINGS["apiKey"], SETTINGS["baseUrl"]}


def run(directory: Path, config: Mapping[str, str], stack: str | None) -> Report:
    """Run the program once and check what it declares.

    ``config``: values of the stack's configuration, by key; they come before those of Pulumi.yaml and of the
    stack's settings file, whose secrets are not read. Raises ``Unusable`` where there is no project or no
    Python for it, ``CannotAnswer`` where the program could not be run and nothing else is wrong.
    """
    try:
        runtime, folder_of_program = runtime_of(directory)
        if runtime in ("yaml", "nodejs"):
            count, read = kept_servers.read(folder_of_program, runtime)
            return _report(count, read, "read, none goes with a server that stays")
        if runtime != "python":
            known = "Python, YAML, TypeScript and JavaScript"
            raise Unusable(f"programs in {known} can be checked, and runtime is {runtime!r}")
        project = load_project(directory)
        python = find_python(project, os.environ)
        values, secret = _configuration(project, config, stack)
    except OfflineError as error:
        raise Unusable(str(error)) from None
    order = {
        "program": str(project.program),
        "directory": str(project.directory),
        "project": project.name,
        "stack": stack or "validate",
        "config": values,
        "secrets": secret,
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "found.json"
        command = [python, "-P", "-m", "pulumi_hosting.reports.checked_program", str(answer)]
        done = subprocess.run(
            command,
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=False,
            cwd=project.directory,
            # Without key and address nothing that a program does can reach the account.
            env={name: value for name, value in os.environ.items() if name not in _ACCOUNT},
        )
        if not answer.exists():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise CannotAnswer(f"the program could not be checked: {lines[-1]}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    if found["not_run"] and len(found["mistakes"]) == 1:  # the one that says where the program ends
        raise CannotAnswer(f"the program could not be run: {found['not_run']}")
    mistakes = [Mistake(**mistake) for mistake in found["mistakes"]]
    return _report(found["resources"], mistakes, "checked, no mistakes")


def _report(resources: int, mistakes: Sequence[Mistake], otherwise: str) -> Report:
    """``otherwise``: what is said of the resources if nothing is wrong."""
    what = "resource" if resources == 1 else "resources"
    return Report(
        {"resources": resources, "mistakes": [asdict(mistake) for mistake in mistakes]},
        [*map(str, mistakes)] or [f"{resources} {what} {otherwise}."],
        exit_code=FOUND if mistakes else 0,
    )


def _configuration(
    project: Project, config: Mapping[str, str], stack: str | None
) -> tuple[dict[str, str], list[str]]:
    """The values and the keys of secrets. A secret of the settings file has a text that stands in for it."""
    settings = StackConfig(Path(), project, {}) if stack is None else StackConfig.load(project, stack)
    hidden = {
        key: value for key, value in (settings.data.get("config") or {}).items() if isinstance(value, dict)
    }
    for key in hidden:
        settings.data["config"][key] = "a secret of the stack"
    values = {key: str(value) for key, value in settings.values(None).items()}
    values |= {settings.key(key): value for key, value in config.items()}
    return values, [key for key in hidden if key in values]
