"""An account as an Ansible playbook: one task for each object."""

import re
from itertools import chain, repeat
from textwrap import indent
from typing import Any

import yaml

from pulumi_hosting.installation import INSTALL_COLLECTION
from pulumi_hosting.reports.account_import import (
    AccountImport,
    ConfiguredValue,
    DeclaredObject,
    Reference,
    Steps,
    Written,
    commented,
    introduction,
    remainder,
)
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced

FILES = ("site.yml",)
_SECRETS = "For a password: `ansible-vault encrypt_string`, then password: with the vault's variable."
_STATES = {"running": "started", "stopped": "stopped"}
"""Power of a server → the ``state`` that declares it: modules have no option ``power``."""
_PRICED = [kind for kind, resource in RESOURCES.items() if isinstance(resource, Priced)]
_TEMPLATE = re.compile(r"\{[{%#]")


class _Expression(str):
    """A template, to be evaluated by Ansible."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Marks what the account shows and Ansible would take for a template: it is never evaluated."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if _TEMPLATE.search(value):
        return dumper.represent_scalar("!unsafe", value, style='"')
    return dumper.represent_str(value)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    _Expression, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style='"')
)


def _steps(found: AccountImport) -> Steps:
    secrets = [
        (f"ansible-vault {verb} secrets.yml", f"add the line {variable}: {one.value_of(field)}")
        for verb, (one, field, variable) in zip(
            chain(["create"], repeat("edit")), found.secrets(), strict=False
        )
    ]
    with_secrets = "--ask-vault-pass --extra-vars @secrets.yml " if secrets else ""
    return (
        (INSTALL_COLLECTION, "once per machine, in a clone of pulumi-hosting"),
        *secrets,
        (f"ansible-playbook --check {with_secrets}site.yml", "nothing is changed: everything is as declared"),
        (f"ansible-playbook {with_secrets}site.yml", "charges nothing, writes nothing"),
    )


def playbook(found: AccountImport) -> Written:
    head = [
        "- name: Everything on the account",
        "  hosts: localhost",
        "  gather_facts: false",
        "  vars:",
        '    ansible_python_interpreter: "{{ ansible_playbook_python }}"',
        "  module_defaults:",
        "    # Nothing is ordered, not even in place of what was deleted. Raise or remove it to order.",
        *(f'    hosting.cloud.{kind}: {{max_charge: "0.00"}}' for kind in _PRICED),
    ]
    tasks = "\n".join(
        indent(commented([one.remark] if one.remark else []) + _dumped([_task(one)]), " " * 4)
        for one in found.declared
    )
    play = "\n".join([*head, "  tasks:", ""])
    steps = _steps(found)
    text = f"{introduction(found, steps, _SECRETS)}---\n{play}{tasks}{remainder(found)}"
    return Written({"site.yml": text}, steps)


def _task(declared: DeclaredObject) -> dict[str, Any]:
    found = declared.object
    options: dict[str, object] = {} if declared.is_unique else {"id": found.id}
    for name, value in declared.inputs.items():
        if name == "power":
            options["state"] = _STATES[value]
        else:
            options[name] = _expression(value) if isinstance(value, (Reference, ConfiguredValue)) else value
    title = found.resource.title
    task = {"name": f"{title[0].upper()}{title[1:]} {declared.name}", f"hosting.cloud.{found.kind}": options}
    return task | ({"register": declared.variable} if declared.is_referenced else {})


def _expression(value: Reference | ConfiguredValue) -> _Expression:
    output = f".{value.kind}.{value.output}" if isinstance(value, Reference) else ""
    return _Expression(f"{{{{ {value.variable}{output} }}}}")


def _dumped(value: object) -> str:
    """YAML. Where a character does not print, every one beyond ASCII is escaped."""
    dumped = ""
    for allow_unicode in (True, False):
        dumped = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=10**6)
        if all(line.isprintable() for line in dumped.split("\n")):
            break
    return dumped
