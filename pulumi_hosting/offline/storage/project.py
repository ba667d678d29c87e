"""Pulumi.yaml, Pulumi.<stack>.yaml, and which Python runs the program."""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ..errors import InvalidConfiguration
from ..model.property_values import Properties, SecretValue
from .backend import write_private
from .passphrase import WEAK_SECRETS, Crypter, passphrase_from


@dataclass(frozen=True)
class Project:
    """A project file. `root`: the directory of Pulumi.yaml;

    `program`: a file, or a directory with `__main__.py`.
    """

    name: str
    root: Path
    program: Path
    options: Properties = field(default_factory=dict)
    config: Properties = field(default_factory=dict)
    refresh: bool = False
    """`options: {refresh: always}`: every up, preview and destroy refreshes first."""

    @property
    def directory(self) -> Path:
        """Where the program and its dynamic providers run."""
        return self.program if self.program.is_dir() else self.program.parent

    def stack_file(self, stack: str) -> Path:
        return self.root / f"Pulumi.{stack}.yaml"


def load_project(cwd: Path) -> Project:
    """The project of a directory: the nearest Pulumi.yaml upwards. Raises `InvalidConfiguration`."""
    path = _project_file(cwd)
    data = _read_yaml(path)
    runtime, options = _runtime(path, data)
    if runtime != "python":
        raise InvalidConfiguration(
            f"{path}: the offline engine runs Python programs only; runtime is {runtime!r}"
        )
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidConfiguration(f"{path}: the project has no name")
    if not re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}", name):
        raise InvalidConfiguration(
            f"{path}: {name!r} is not a project name; it may have letters, digits, '-', '_' and '.'"
        )
    main = data.get("main") or "."
    if not isinstance(main, str):
        raise InvalidConfiguration(f"{path}: main must be a path")
    try:
        program = (path.parent / main).resolve()
        found = program.exists()
    except (OSError, ValueError):
        found = False
    if not found:
        raise InvalidConfiguration(f"{path}: could not find the program {main!r}")
    refresh = _mapping(path, "options", data.get("options")).get("refresh")
    if refresh not in (None, "", "always"):
        raise InvalidConfiguration(f"{path}: options.refresh must be 'always' or left out")
    return Project(
        name, path.parent, program, options, _mapping(path, "config", data.get("config")), refresh == "always"
    )


def runtime_of(cwd: Path) -> tuple[str, Path]:
    """In which language the program of a directory is, and the directory of its files. Raises
    `InvalidConfiguration`."""
    path = _project_file(cwd)
    data = _read_yaml(path)
    main = (path.parent / str(data.get("main") or ".")).resolve()
    return str(_runtime(path, data)[0]), main if main.is_dir() else main.parent


def _project_file(cwd: Path) -> Path:
    cwd = cwd.absolute()
    if not cwd.is_dir():
        raise InvalidConfiguration(f"{cwd} is not a directory")
    for root in (cwd, *cwd.parents):
        for name in ("Pulumi.yaml", "Pulumi.yml"):
            if (root / name).is_file():
                return root / name
    raise InvalidConfiguration(f"no Pulumi.yaml project file found in {cwd} or above it")


def _runtime(path: Path, data: Properties) -> tuple[object, Properties]:
    """Its name and its options."""
    runtime = data.get("runtime")
    if not isinstance(runtime, dict):
        return runtime, {}
    return runtime.get("name"), _mapping(path, "runtime.options", runtime.get("options"))


def _mapping(path: Path, key: str, value: object) -> Properties:
    """A mapping of a settings file; empty if absent. Raises `InvalidConfiguration` for anything else."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise InvalidConfiguration(f"{path}: {key} must be a mapping")
    return value


def _read_yaml(path: Path) -> Properties:
    try:
        data = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise InvalidConfiguration(f"{path} cannot be read: {error.strerror}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InvalidConfiguration(f"{path} must be a mapping")
    return data


def find_python(project: Project, environ: Mapping[str, str]) -> str:
    """The Python of the program and of dynamic providers:

    PULUMI_PYTHON_CMD, else the project's virtualenv, else this one.
    """
    if command := environ.get("PULUMI_PYTHON_CMD"):
        return command
    if virtualenv := project.options.get("virtualenv"):
        folder = "Scripts" if os.name == "nt" else "bin"
        python = project.root / str(virtualenv) / folder / "python"
        if not python.exists():
            raise InvalidConfiguration(
                f"the virtualenv of Pulumi.yaml has no {python}; create it, or set PULUMI_PYTHON_CMD"
            )
        return str(python)
    return sys.executable


@dataclass
class StackConfig:
    """The configuration of one stack. Keys are `namespace:name`; without namespace it is the project's
    name.
    """

    path: Path
    project: Project
    data: Properties

    @classmethod
    def load(cls, project: Project, stack: str) -> "StackConfig":
        path = project.stack_file(stack)
        data = _read_yaml(path) if path.exists() else {}
        for name, value in _mapping(path, "config", data.get("config")).items():
            if isinstance(value, dict) and set(value) == {"secure"} and not isinstance(value["secure"], str):
                raise InvalidConfiguration(f"{path}: the secret {name} has no text")
        if not isinstance(data.get("encryptionsalt") or "", str):
            raise InvalidConfiguration(f"{path}: encryptionsalt must be a text")
        return cls(path, project, data)

    def save(self) -> None:
        write_private(self.path, yaml.safe_dump(self.data, sort_keys=False))
        self.path.chmod(0o644)  # as in Pulumi: the file is meant to be committed; its secrets are encrypted

    def crypter(self, passphrase: str | None) -> Crypter | None:
        salt = self.data.get("encryptionsalt")
        return Crypter(passphrase, salt) if salt else None

    def ensure_crypter(self, environ: Mapping[str, str]) -> Crypter:
        """The stack's crypter; a stack without salt gets one, saved at once."""
        passphrase = passphrase_from(environ)
        crypter = self.crypter(passphrase)
        if crypter is None:
            crypter = Crypter.new(passphrase, weak=bool(environ.get(WEAK_SECRETS)))
            self.data = {"encryptionsalt": crypter.state} | self.data
            self.save()
        return crypter

    def key(self, name: str) -> str:
        return name if ":" in name else f"{self.project.name}:{name}"

    def set(self, name: str, value: str, crypter: Crypter | None = None) -> None:
        """Set a value; given a crypter, as a secret."""
        config = self.data["config"] = self.data.get("config") or {}
        config[self.key(name)] = value if crypter is None else {"secure": crypter.encrypt(value)}

    def values(self, crypter: Crypter | None) -> Properties:
        """Every value as text, secrets as `Secret`. Values of the stack override those of the project
        file.
        """
        result: Properties = {}
        for name, declared in self.project.config.items():
            default = (
                declared.get("value", declared.get("default")) if isinstance(declared, dict) else declared
            )
            if default is not None:
                result[self.key(str(name))] = _text(default)
        for name, value in (self.data.get("config") or {}).items():
            if isinstance(value, dict) and set(value) == {"secure"}:
                if crypter is None:
                    raise InvalidConfiguration(f"{self.path} holds the secret {name}, but no encryptionsalt")
                result[str(name)] = SecretValue(crypter.decrypt(value["secure"]))
            else:
                result[str(name)] = _text(value)
        return result


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, default=str)  # a date of YAML is text here
