"""What a native program prints when Pulumi interrupts it, in a new Python."""

import subprocess
import sys

from pulumi_hosting.provider.version import version

PROGRAM = """
from pulumi_hosting.provider.interruption import explain_interrupts

explain_interrupts()
raise {error}("here")
"""


def ended(error: str, *arguments: str) -> str:
    command = [sys.executable, "-c", PROGRAM.format(error=error), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


def test_an_interrupted_program_names_the_command_that_installs_the_plugin() -> None:
    (line,) = ended("KeyboardInterrupt", "/usr/bin/pulumi-language-python-exec").splitlines()
    assert f"at version v{version()}, run `pulumi-hosting plugin install`" in line


def test_other_errors_and_other_programs_end_as_ever() -> None:
    assert "Traceback" in ended("ValueError", "/usr/bin/pulumi-language-python-exec")
    assert "Traceback" in ended("KeyboardInterrupt")
