"""The scripts: files in ``scripts/``, one for each group.

A file has ``forms`` (``dynamic``, ``native``, ``ansible``, ``tools``) and ``scripts``. A script has a name,
options of its emulator, what it declares at first, and steps. A step is one of these:

- text: a command. With ``dynamic`` and ``native`` one of Pulumi's, as ``up --refresh``; with ``tools``, or
  where it begins with ``pulumi-hosting``, one of the project's own.
- ``run``, ``check``: a play of these tasks, for real or in check mode; ``arguments`` for ansible-playbook.
- ``declare``, ``change``, ``remove``: what the program declares from here on. Null takes an argument away.
- ``account``: calls of the emulator's control interface, each a list of method, path and body.
- ``key``: the next commands have another key: ``test``, ``wrong``, ``none``, ``read only``, ``live`` or
  ``other account``.
- ``environ``: variables of the next commands. Null takes one away.
- ``program``: a program in place of the declarations; the module of its form is ``hosting``.
- ``save``: files that get what a command of Pulumi prints, for the project's own commands.
- ``file``, ``show``: files of the script's folder that are written with this text, or shown.

Ids are those that an emulator gives: the first server is 20001, its addresses begin at 30001, invoices at
40001, SSH keys at 60001, domains at 70001, subscriptions at 80001.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.programs import Ref

FOLDER = Path(__file__).parent / "scripts"
FORMS = ("dynamic", "native", "ansible", "tools")
SAMPLED = 10
"""One script of so many is played in ``make test-all``."""

Step = str | Mapping[str, Any]


@dataclass(frozen=True)
class Script:
    """``group``: the name of its file."""

    group: str
    form: str
    name: str
    steps: tuple[Step, ...]
    emulator: Mapping[str, Any] = field(default_factory=dict)
    declare: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.group}: {self.name} ({self.form})"

    @property
    def commands(self) -> int:
        return sum(
            isinstance(step, str) or not {"run", "check", "save"}.isdisjoint(step) for step in self.steps
        )


class _Loader(yaml.SafeLoader):
    """Reads ``!code web.id`` as a value that stands in the program as it is."""


_Loader.add_constructor("!code", lambda loader, node: Ref(node.value))


@cache
def scripts() -> tuple[Script, ...]:
    """Every script in each of its forms, by group."""
    return tuple(script for path in sorted(FOLDER.glob("*.yml")) for script in _of_file(path))


def sample() -> list[Script]:
    """A tenth of them, from all groups."""
    return list(scripts()[::SAMPLED])


def _of_file(path: Path) -> Iterator[Script]:
    group = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506  derived from the safe one
    for form in group["forms"]:
        for script in group["scripts"]:
            yield Script(path.stem, form, **{**script, "steps": tuple(script["steps"])})
