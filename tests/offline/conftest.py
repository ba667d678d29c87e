"""Projects for the offline engine's tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as CommandResult

from pulumi_hosting.cli.offline import offline
from pulumi_hosting.offline import StackResult
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.offline.replay import SALT, ToyProject

MakeProject = Callable[..., ToyProject]


@pytest.fixture
def make_project(tmp_path: Path, warm_python: WarmPython) -> MakeProject:
    """A toy project with the given program instead of the recordings' one; the stack `dev` exists."""

    def make(source: str, *, form: str = "dynamic", salt: str = SALT) -> ToyProject:
        project = ToyProject(tmp_path, form, warm_python.command, salt)
        write(project, source)
        return project

    return make


def write(project: ToyProject, source: str) -> None:
    module = "dyn" if project.form == "dynamic" else "native"
    (project.directory / "__main__.py").write_text(
        f"import pulumi\nfrom toykit.{module} import *\n{source}\n"
    )


TWO = """
a = Thing("a", {"name": "a", "size": "s"})
b = Thing("b", {"name": "b", "note": a.id})
"""


def up(project: ToyProject, **options: bool) -> StackResult:
    return project.stack().up(parallel=4, **options)


def methods(project: ToyProject) -> list[str]:
    return [call["method"] for call in project.calls()]


def names(result: StackResult, op: str) -> list[str]:
    return [urn.rsplit("::", 1)[-1] for done, urn, _ in result.operations if done == op]


def called(project: ToyProject, method: str) -> list[str]:
    """Ids of the things that the provider was called for."""
    return sorted(str(call.get("id")) for call in project.calls() if call["method"] == method)


class Command:
    """`offline …` in the folder and environment of a toy project."""

    def __init__(self, project: ToyProject) -> None:
        self.project = project

    def __call__(self, *arguments: str, input: str | None = None) -> CommandResult:
        environ = {key: None for key in os.environ if key.startswith("PULUMI_")} | self.project.environ
        return CliRunner().invoke(
            offline, [*arguments, "--cwd", str(self.project.directory)], env=environ, input=input
        )
