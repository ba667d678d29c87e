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
from importlib import metadata
from pathlib import Path

from pulumi_hosting.installation import INSTALL_COLLECTION, NEWER_VERSION, PACKAGE, install_extras
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.rehearsal.engines import finished
from pulumi_hosting.reports.checks import Check, check, note, ok, problem, warning

_COLLECTION = Path("ansible_collections", "hosting", "cloud")
_USUAL_PATHS = "~/.ansible/collections:/usr/share/ansible/collections"
_SECONDS = 30.0


def checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """One line for each thing."""
    yield _package()
    yield _pulumi(environ)
    yield _plugin(environ)
    collection = _place_of_collection(environ)
    yield _ansible(environ, collection)
    yield _collection(collection)


def _place_of_collection(environ: Mapping[str, str]) -> Path | None:
    """The folder of the collection that Ansible finds first; ``ansible.cfg`` is not read."""
    given = environ.get("ANSIBLE_COLLECTIONS_PATH") or _USUAL_PATHS
    places = [Path(place).expanduser() for place in given.split(":") if place]
    places += [Path(place) for place in sys.path if place]
    found = (place.parent if place.name == "ansible_collections" else place for place in places)
    return next((home / _COLLECTION for home in found if (home / _COLLECTION).is_dir()), None)


def _in_collection(collection: Path | None, file: str, pattern: str) -> str | None:
    """What a file of the collection says."""
    try:
        text = (collection / file).read_text(encoding="utf-8") if collection else ""
    except (OSError, ValueError):
        return None
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def _version_of(environ: Mapping[str, str], *command: str) -> str | None:
    """The version that a program prints; None where there is no such program."""
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        return None
    environ = {name: value for name, value in environ.items() if name != "HOSTING_API_KEY"}
    try:
        variables = {**environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
        done = finished([program, *command[1:]], variables, most=_SECONDS)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+\.\d+(\.\d+)?[\w.+-]*", done.stdout)
    return found[0] if found else None


@check("package")
def _package() -> Check:
    version = _of_package(PACKAGE) or "0"
    return ok(f"{PACKAGE} {version}, Python {sys.version.split()[0]}", version=version)


@check("pulumi")
def _pulumi(environ: Mapping[str, str]) -> Check:
    sdk, cli = _of_package("pulumi"), _version_of(environ, "pulumi", "version")
    facts = {"sdk": sdk, "cli": cli}
    if sdk is None:
        text = f"CLI {cli}, and no SDK for Python" if cli else "not installed"
        return note(text, f"{install_extras('pulumi')}; needed for programs in Python", **facts)
    if cli is None:
        return note(
            f"SDK {sdk}, and no CLI on PATH",
            "install Pulumi's CLI for real stacks; pulumi-hosting offline works without it",
            **facts,
        )
    if numbers(sdk)[:1] != numbers(cli)[:1]:
        text = f"SDK {sdk} and CLI {cli} are of different major versions"
        return problem(text, f"install a CLI of version {numbers(sdk)[0]}", **facts)
    return ok(f"SDK {sdk}, CLI {cli}", **facts)


@check("plugin")
def _plugin(environ: Mapping[str, str]) -> Check:
    wanted = install.place(environ)
    others = sorted(path.name for path in wanted.parent.glob("resource-hosting-v*") if path.is_dir())
    facts = {"path": str(wanted) if wanted.exists() else None, "installed": others}
    step = "pulumi-hosting plugin install"
    if not wanted.exists():
        if on_path := shutil.which(install.EXECUTABLE, path=environ.get("PATH")):
            return ok(f"{on_path}, which Pulumi's CLI finds on PATH", **facts)
        if others:
            text = f"{', '.join(others)} is installed, and this package is {wanted.name}"
            return warning(text, step, **facts)
        text = "not installed; pulumi_hosting.native, YAML and TypeScript need it"
        return note(text, step, **facts)
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
    if starts != sys.executable:
        text = f"{wanted.name} starts {starts}, and this is {sys.executable}"
        return warning(text, step, **facts)
    return ok(f"{wanted.name} in {wanted.parent}", **facts)


@check("ansible-core")
def _ansible(environ: Mapping[str, str], collection: Path | None) -> Check:
    """Of this Python, else of the ``ansible`` on PATH."""
    own = _of_package("ansible-core")
    core = own or _version_of(environ, "ansible", "--version")
    needed = _in_collection(collection, "meta/runtime.yml", r"^requires_ansible: ['\"]?>=([0-9.]+)")
    facts = {"version": core, "needed": needed}
    if core is None:
        text = "not installed; the collection needs it"
        return note(text, "pip install ansible-core", **facts)
    if needed is not None and numbers(core) < numbers(needed):
        text = f"{core}, and the collection needs {needed} or later"
        return problem(text, f"pip install 'ansible-core>={needed}'", **facts)
    if own is None:
        text = f"{core}, in another Python than {PACKAGE}; modules run in the Python of Ansible"
        return warning(text, f"install {PACKAGE} in that Python too", **facts)
    return ok(core, **facts)


@check("collection")
def _collection(collection: Path | None) -> Check:
    """Its version, and ``CORE``: the oldest version of this package that it works with."""
    package = _of_package(PACKAGE) or "0"
    version, core = (
        _in_collection(collection, "plugins/module_utils/version.py", rf'^{name} = "([^"]+)"')
        for name in ("VERSION", "CORE")
    )
    facts = {"version": version, "needed_package": core, "path": str(collection or "") or None}
    step = f"{INSTALL_COLLECTION} --force, in a clone of {PACKAGE}"
    if collection is None:
        return note("hosting.cloud is not installed", step, **facts)
    if version is None:
        text = f"{collection} has no version that can be read"
        return problem(text, step, **facts)
    if core is not None and numbers(package) < numbers(core):
        text = f"hosting.cloud {version} needs {PACKAGE} {core} or later, and {package} is installed"
        return problem(text, NEWER_VERSION, **facts)
    if numbers(version) != numbers(package):
        text = f"hosting.cloud {version} in {collection}, and {PACKAGE} {package}"
        return warning(text, step, **facts)
    return ok(f"hosting.cloud {version} in {collection}", **facts)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing.

    >>> numbers("v3.140.0-rc.1") < numbers("3.141.0")
    True
    """
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _of_package(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
