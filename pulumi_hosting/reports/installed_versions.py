"""The versions on this machine against each other: this package, Pulumi's SDK and CLI, the plugin,
ansible-core and the collection ``hosting.cloud``.

Only files and ``pulumi version``, ``ansible --version`` are read; nothing is asked of the network.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path

from pulumi_hosting.installation import INSTALL_COLLECTION, NEWER_VERSION, PACKAGE, install_extras
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.reports.checks import Check, check, ok, problem, warning

_COLLECTION = Path("ansible_collections", "hosting", "cloud")
_USUAL_PATHS = "~/.ansible/collections:/usr/share/ansible/collections"
_SECONDS = 30.0


@dataclass(frozen=True)
class Installed:
    """What is installed, as ``environ`` finds it. A version is None where the thing is not there."""

    environ: Mapping[str, str]
    python: str = sys.executable

    @cached_property
    def package(self) -> str:
        return _of_package(PACKAGE) or "0"

    @cached_property
    def pulumi_sdk(self) -> str | None:
        return _of_package("pulumi")

    @cached_property
    def pulumi_cli(self) -> str | None:
        return _version(self._output("pulumi", "version"))

    @cached_property
    def ansible_core(self) -> str | None:
        """Of this Python, else of the ``ansible`` on PATH."""
        return _of_package("ansible-core") or self.other_ansible

    @cached_property
    def other_ansible(self) -> str | None:
        """Of an ``ansible`` that runs in another Python than this package."""
        if _of_package("ansible-core") is not None:
            return None
        return _version(self._output("ansible", "--version"))

    @cached_property
    def collection(self) -> Path | None:
        """The folder of the collection that Ansible finds first; ``ansible.cfg`` is not read."""
        given = self.environ.get("ANSIBLE_COLLECTIONS_PATH") or _USUAL_PATHS
        places = [Path(place).expanduser() for place in given.split(":") if place]
        places += [Path(place) for place in sys.path if place]
        found = (place.parent if place.name == "ansible_collections" else place for place in places)
        return next((home / _COLLECTION for home in found if (home / _COLLECTION).is_dir()), None)

    def of_collection(self, name: str) -> str | None:
        """``VERSION`` of the collection, or ``CORE``: the oldest version of this package it works with."""
        return self._in_collection("plugins/module_utils/version.py", rf'^{name} = "([^"]+)"')

    @property
    def needed_ansible(self) -> str | None:
        """The oldest ansible-core that the collection works with."""
        return self._in_collection("meta/runtime.yml", r"^requires_ansible: ['\"]?>=([0-9.]+)")

    def _in_collection(self, file: str, pattern: str) -> str | None:
        if self.collection is None:
            return None
        try:
            text = (self.collection / file).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
        found = re.search(pattern, text, re.MULTILINE)
        return found[1] if found else None

    def _output(self, *command: str) -> str:
        program = shutil.which(command[0], path=self.environ.get("PATH"))
        if program is None:
            return ""
        environ = {**self.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
        environ = {name: value for name, value in environ.items() if name != "HOSTING_API_KEY"}
        try:
            done = subprocess.run(
                [program, *command[1:]],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return ""
        return done.stdout


def checks(environ: Mapping[str, str] | None = None) -> Iterator[Check]:
    """One line for each thing."""
    found = Installed(os.environ if environ is None else environ)
    yield _package(found)
    yield _pulumi(found)
    yield _plugin(found)
    yield _ansible(found)
    yield _collection(found)


@check("package")
def _package(found: Installed) -> Check:
    return ok(f"{PACKAGE} {found.package}, Python {sys.version.split()[0]}", version=found.package)


@check("pulumi")
def _pulumi(found: Installed) -> Check:
    sdk, cli = found.pulumi_sdk, found.pulumi_cli
    facts = {"sdk": sdk, "cli": cli}
    if sdk is None:
        text = f"CLI {cli}, and no SDK for Python" if cli else "not installed"
        step = f"{install_extras('pulumi')}; needed for programs in Python"
        return ok(text, step, **facts)
    if cli is None:
        return ok(
            f"SDK {sdk}, and no CLI on PATH",
            "install Pulumi's CLI for real stacks; pulumi-hosting offline works without it",
            **facts,
        )
    if numbers(sdk)[:1] != numbers(cli)[:1]:
        text = f"SDK {sdk} and CLI {cli} are of different major versions"
        return problem(text, f"install a CLI of version {numbers(sdk)[0]}", **facts)
    return ok(f"SDK {sdk}, CLI {cli}", **facts)


@check("plugin")
def _plugin(found: Installed) -> Check:
    wanted = install.place(found.environ)
    others = sorted(path.name for path in wanted.parent.glob("resource-hosting-v*") if path.is_dir())
    facts = {"path": str(wanted) if wanted.exists() else None, "installed": others}
    step = "pulumi-hosting plugin install"
    if not wanted.exists():
        if others:
            text = f"{', '.join(others)} is installed, and this package is {wanted.name}"
            return warning(text, step, **facts)
        text = "not installed; pulumi_hosting.native, YAML and TypeScript need it"
        return ok(text, step, **facts)
    launcher = wanted / install.EXECUTABLE
    try:
        text = launcher.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return problem(f"{launcher} cannot be read", step, **facts)
    python = re.search(r"^exec (?:'([^']+)'|(\S+))", text, re.MULTILINE)
    starts = (python[1] or python[2]) if python else ""
    if not os.access(starts, os.X_OK):
        text = f"{wanted.name} starts {starts or 'nothing'}, which is not there"
        return problem(text, step, **facts)
    if starts != found.python:
        text = f"{wanted.name} starts {starts}, and this is {found.python}"
        return warning(text, step, **facts)
    return ok(f"{wanted.name} in {wanted.parent}", **facts)


@check("ansible-core")
def _ansible(found: Installed) -> Check:
    core, needed = found.ansible_core, found.needed_ansible
    facts = {"version": core, "needed": needed}
    if core is None:
        text = "not installed; the collection needs it"
        return ok(text, "pip install ansible-core", **facts)
    if needed is not None and numbers(core) < numbers(needed):
        text = f"{core}, and the collection needs {needed} or later"
        return problem(text, f"pip install 'ansible-core>={needed}'", **facts)
    if found.other_ansible is not None:
        text = f"{core}, in another Python than {PACKAGE}; modules run in the Python of Ansible"
        return warning(text, f"install {PACKAGE} in that Python too", **facts)
    return ok(core, **facts)


@check("collection")
def _collection(found: Installed) -> Check:
    version, core = found.of_collection("VERSION"), found.of_collection("CORE")
    facts = {"version": version, "needed_package": core, "path": str(found.collection or "") or None}
    step = f"{INSTALL_COLLECTION} --force, in a clone of {PACKAGE}"
    if found.collection is None:
        return ok("hosting.cloud is not installed", step, **facts)
    if version is None:
        text = f"{found.collection} has no version that can be read"
        return problem(text, step, **facts)
    if core is not None and numbers(found.package) < numbers(core):
        text = f"hosting.cloud {version} needs {PACKAGE} {core} or later, and {found.package} is installed"
        return problem(text, NEWER_VERSION, **facts)
    if numbers(version) != numbers(found.package):
        text = f"hosting.cloud {version} in {found.collection}, and {PACKAGE} {found.package}"
        return warning(text, step, **facts)
    return ok(f"hosting.cloud {version} in {found.collection}", **facts)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing.

    >>> numbers("v3.140.0-rc.1") < numbers("3.141.0")
    True
    """
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _version(output: str) -> str | None:
    found = re.search(r"\d+\.\d+(\.\d+)?[\w.+-]*", output)
    return found[0] if found else None


def _of_package(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
