"""`pulumi-hosting` with and without its extras, terminated, and in a directory without a project."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pulumi_hosting.installation import install_extras
from pulumi_hosting.rehearsal.warm_python import WarmPython

DEMO = Path(__file__).parent.parent / "examples" / "demo" / "program"


def run(*arguments: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The command in a Python that cannot find some modules, as after an installation without their extra."""
    code = textwrap.dedent(f"""
        import sys
        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {without!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        importlib_util = __import__("importlib.util").util
        real = importlib_util.find_spec
        def find_spec(name, package=None):
            return None if name.partition(".")[0] in {without!r} else real(name, package)
        importlib_util.find_spec = find_spec
        sys.meta_path.insert(0, Missing())
        from pulumi_hosting.cli import main
        main({list(arguments)!r}, prog_name="pulumi-hosting")
    """)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("without", [(), ("pulumi", "google", "grpc"), ("starlette", "uvicorn")])
def test_help_lists_every_command_whatever_is_installed(without: tuple[str, ...]) -> None:
    shown = run("--help", without=without)
    assert shown.returncode == 0, shown.stderr
    for command in ("emulator", "offline", "rehearse"):
        assert f"\n  {command} " in shown.stdout


@pytest.mark.parametrize(
    ("command", "without", "extra"),
    [
        (("emulator",), ("starlette", "uvicorn"), "emulator"),
        (("exporter",), ("prometheus_client",), "exporter"),
        (("offline", "up"), ("pulumi", "google", "grpc"), "pulumi"),
        (("rehearse", str(DEMO)), ("starlette", "uvicorn"), "emulator"),
        (("rehearse", str(DEMO)), ("pulumi", "google", "grpc"), "pulumi"),
        (("rehearse", str(DEMO)), ("pulumi", "google", "grpc", "starlette", "uvicorn"), "pulumi,emulator"),
    ],
)
def test_a_missing_extra_is_one_line_that_names_it(
    command: tuple[str, ...], without: tuple[str, ...], extra: str
) -> None:
    refused = run(*command, without=without)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        f"Error: this command needs more than is installed. Next: {install_extras(*extra.split(','))}"
    ]


@pytest.mark.parametrize("missing", ["grpc", "pulumi"])
def test_the_plugin_without_its_extra_is_one_line_that_names_it(missing: str) -> None:
    code = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv = ['pulumi-resource-hosting', '--version']\n"
        "from pulumi_hosting.provider.plugin.__main__ import main; main()"
    )
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        f"pulumi-resource-hosting: the plugin is an extra. Next: {install_extras('pulumi')}"
    ]


@pytest.mark.parametrize("name", ["Server", "SshKey"])
def test_a_resource_without_the_sdk_names_the_extra(name: str) -> None:
    code = f"import sys; sys.modules['pulumi'] = None\nfrom pulumi_hosting import {name}"
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"ImportError: {name} needs Pulumi's SDK. Next: {install_extras('pulumi')}"
    )


@pytest.mark.parametrize("project", [None, "name: [x"])
def test_a_directory_without_a_project_is_one_line(
    warm: WarmPython, tmp_path: Path, project: str | None
) -> None:
    if project:
        (tmp_path / "Pulumi.yaml").write_text(project, encoding="utf-8")
    refused = run("rehearse", str(tmp_path), "--engine", "offline")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: the stack could not be created: ")
    assert len(refused.stderr.splitlines()) == 1


def test_a_setting_without_a_value_is_refused(warm: WarmPython, tmp_path: Path) -> None:
    refused = run("rehearse", str(tmp_path), "--config", "region")
    assert refused.returncode == 2
    assert "KEY=VALUE" in refused.stderr


def test_a_terminated_rehearsal_leaves_nothing_behind(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "Pulumi.yaml").write_text("name: slow\nruntime: python\n", encoding="utf-8")
    (program / "Pulumi.rehearsal.yaml").write_text("config:\n  slow:region: nl\n", encoding="utf-8")
    (program / "__main__.py").write_text(
        "import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(60)\n", encoding="utf-8"
    )
    folder = tmp_path / "tmp"
    folder.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "pulumi_hosting.cli", "rehearse", str(program), "--engine", "offline"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    while not (program / "started").exists():
        assert running.poll() is None, "it ended before the program started"
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    # Its output ends only when the last process that holds it has ended, the emulator included.
    output, _ = running.communicate()
    assert running.returncode != 0
    assert b"Traceback" not in output
    assert sorted(path.name for path in program.iterdir() if path.suffix == ".yaml") == [
        "Pulumi.rehearsal.yaml",
        "Pulumi.yaml",
    ]
    assert list(folder.iterdir()) == []
