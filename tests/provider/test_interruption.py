"""What a native program prints when Pulumi interrupts it, in a new Python."""

import os
import subprocess
import sys
from pathlib import Path

from pulumi_hosting.provider.plugin.install import place, write_launcher
from pulumi_hosting.provider.version import version

BY_PULUMI = "/usr/bin/pulumi-language-python-exec"
PROGRAM = """
import pulumi_hosting.{form} as hosting
from pulumi_hosting.provider.interruption import explain_interrupts

explain_interrupts()
raise {error}("here")
"""


def ended(error: str, *arguments: str, form: str = "native", home: Path | None = None) -> str:
    command = [sys.executable, "-c", PROGRAM.format(error=error, form=form), *arguments]
    where = {"PULUMI_HOME": str(home), "PULUMI_IGNORE_AMBIENT_PLUGINS": "true"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **where})
    assert done.returncode != 0
    return done.stderr


def test_an_interrupted_program_names_the_command_that_installs_the_plugin(tmp_path: Path) -> None:
    (line,) = ended("KeyboardInterrupt", BY_PULUMI, home=tmp_path).splitlines()
    assert f"at version v{version()}, run `pulumi-hosting plugin install`" in line


def test_it_prints_nothing_if_it_needs_no_plugin_or_has_it(tmp_path: Path) -> None:
    assert ended("KeyboardInterrupt", BY_PULUMI, form="client", home=tmp_path) == ""
    target = place({"PULUMI_HOME": str(tmp_path)})
    target.mkdir(parents=True)
    write_launcher(target)
    assert ended("KeyboardInterrupt", BY_PULUMI, home=tmp_path) == ""


def test_other_errors_and_other_programs_end_as_ever() -> None:
    assert "Traceback" in ended("ValueError", BY_PULUMI)
    assert "Traceback" in ended("KeyboardInterrupt")
