"""Everything that is on the account, written as the files of a program or a playbook."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, groupby, repeat
from pathlib import Path
from textwrap import indent
from typing import Any, Literal

import yaml

from pulumi_hosting.client.shared_store import Files
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.installation import INSTALL_COLLECTION
from pulumi_hosting.provider.names import class_of
from pulumi_hosting.reports.account_copy import run as write_account_file
from pulumi_hosting.reports.account_import import (
    AccountImport,
    ConfiguredValue,
    DeclaredObject,
    Reference,
    Steps,
    account_import,
    commented,
    introduction,
    next_steps,
    remainder,
)
from pulumi_hosting.reports.account_objects import named, read_account
from pulumi_hosting.reports.import_pipeline import SCOPE, Service, pipeline_of
from pulumi_hosting.reports.new_files import must_be_free, write
from pulumi_hosting.reports.report import Asking, Report, Section, Table, Unusable, not_read, plural
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.shared_reads import Reads
from pulumi_hosting.session.snapshot_files import SnapshotFiles

Form = Literal["dynamic", "native", "ansible"]


MOST_IN_ONE_FILE = 100
"""Of more objects, those of each kind are in a file of their own."""


def run(
    asking: Asking, directory: Path | None, form: Form, account_file: Path | None, pipeline: Service | None
) -> Report:
    if directory is None and account_file is not None:
        return write_account_file(asking, account_file)
    if directory is None or account_file is not None:
        raise Unusable("give DIR or --account-file FILE, not both. Next: pulumi-hosting import --help")
    names = ("site.yml",) if form == "ansible" else ("Pulumi.yaml", "__main__.py")
    must_be_free(directory / name for name in names)
    with asking() as (request, step):
        if request.client.is_test_key:
            raise Unusable(
                "HOSTING_API_KEY is a test key, with which objects are only simulated. Next: set a live key "
                "that may read servers, domains and webhooks"
            )
        with _going_on(request):
            found = account_import(read_account(request, step))
    steps: Steps = ()
    files: dict[Path, str] = {}
    if found.declared:
        last, beside = pipeline_of(directory, form, pipeline) if pipeline else ((), {})
        if form == "ansible":
            steps = _steps_of_playbook(found) + last
            made = _playbook(found, steps)
        else:
            steps = _steps_of_program(found, form) + last
            made = _program(found, form, steps, directory.resolve().name)
            made["Pulumi.yaml"] += f"  hosting:scope: {SCOPE}\n" if pipeline else ""
        files = {directory / name: text for name, text in made.items()} | beside
        write(files)
    written = [*map(str, files)]
    warnings = [*map(str, found.left_out), *(one.remark for one in found.declared if one.remark)]
    warnings += [not_read(plural(kind), reason) for kind, reason in found.unread.items()]
    sections = [*_sections(found, directory, written, steps)]
    return Report(_facts(found, written, steps), sections, warnings, 0 if found.is_complete else 1)


@contextmanager
def _going_on(request: Request) -> Iterator[None]:
    """Keeps what is read, so that a run that was stopped goes on: addresses are one expensive request for
    each server.
    """
    folder = local_files.directory() / f"import-{local_files.account_scope(request.client)}"
    folder.mkdir(exist_ok=True)
    request.session.reads = Reads(SnapshotFiles(Files(folder), lambda: ""))
    yield
    shutil.rmtree(folder, ignore_errors=True)


def _sections(found: AccountImport, directory: Path, written: list[str], steps: Steps) -> Iterator[Section]:
    if not written:
        unread = f" Not read: {', '.join(map(plural, found.unread))}." if found.unread else ""
        yield f"There is nothing to be declared; nothing was written.{unread}"
        return
    yield Table(("KIND", "DECLARED"), [*found.counts().items()])
    if secrets := found.secrets():
        yield ""
    for one, field, _ in secrets:
        yield f"left as configuration, as it may hold a secret: {one.value_of(field)} ({one.object.name})"
    yield f"\nwritten: {', '.join(written)}\n\nNext:"
    for line in next_steps((("cd " + str(directory), ""), *steps)):
        yield f"  {line}"


def _facts(found: AccountImport, written: list[str], steps: Steps) -> dict[str, object]:
    return {
        "written": written,
        "declared": [{**named(one.object), "name": one.name} for one in found.declared],
        "configuration": [
            {**named(one.object), "field": field, "name": variable}
            for one, field, variable in found.secrets()
        ],
        "left_out": [
            {**named(one.object), "field": one.field, "reason": one.reason} for one in found.left_out
        ],
        "not_read": dict(found.unread),
        "next": [command for command, _ in steps],
    }


# --- a Pulumi program in Python, with dynamic resources or with the native provider

_LINE = 88
"""Longer calls have a line for each argument."""
_SECRETS = (
    "For a password: `pulumi config set --secret webPassword`, then "
    'password=pulumi.Config().require_secret("webPassword").'
)
_UP: Mapping[Form, str] = {
    "dynamic": "charges nothing, writes only ownership tags",
    "native": "imports everything: charges nothing, writes nothing",
}
_AFTERWARDS: Mapping[Form, tuple[str, ...]] = {
    "dynamic": (
        "adopt_id: the object is taken over, not ordered. After the first `pulumi up` it may stay or go.",
    ),
    "native": (
        "import_: the object is taken over, not ordered. After the first `pulumi up` it may stay or go.",
        "What is imported carries no ownership tag.",
    ),
}
_PROTECTED = (
    "protect: what was bought is not deleted, and a domain's renewal is not ended, as long as it is there.",
    "To give something up, delete `protect=True`, run `pulumi up`, then delete the declaration.",
)
_IMPORT: Mapping[Form, str] = {
    "dynamic": "import pulumi_hosting as hosting\n",
    "native": "from pulumi_hosting import native as hosting\n",
}
_LIMIT = """\
config:
  # Nothing is ordered, not even in place of what was deleted. To order, raise it for the stack:
  # pulumi config set hosting:maxCharge 25.00
  hosting:maxCharge: "0.00"
"""


def _steps_of_program(found: AccountImport, form: Form) -> Steps:
    plugin = (("pulumi-hosting plugin install", "once per machine"),) if form == "native" else ()
    return (
        *plugin,
        ("pulumi stack init prod", ""),
        *(
            (f"pulumi config set --secret {variable}", one.value_of(field))
            for one, field, variable in found.secrets()
        ),
        ("pulumi preview", "names what is taken over; nothing is ordered"),
        ("pulumi up", _UP[form]),
        ("pulumi preview --expect-no-changes", "again: nothing to do"),
    )


def _program(found: AccountImport, form: Form, steps: Steps, project: str) -> dict[str, str]:
    """``project``: the name of the Pulumi project, made fit."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip("-.") or "account"
    settings = commented(["Next:", *(f"  {line}" for line in next_steps(steps))])
    kept = _PROTECTED if any(map(_is_protected, found.declared)) else ()
    head = introduction(found, steps, _SECRETS) + commented(["", *_AFTERWARDS[form], *kept])
    parts = _by_kind(found)
    files = {f"{_module(kind)}.py": _declarations(part, form, kind) for kind, part in parts.items()}
    main = "".join(f"import {_module(kind)}  # noqa: F401\n" for kind in parts)
    files["__main__.py"] = f"{head}\n{main or _declarations(found.declared, form)}{remainder(found)}"
    return files | {"Pulumi.yaml": f"{settings}name: {python_text(name)}\nruntime: python\n{_LIMIT}"}


def _by_kind(found: AccountImport) -> dict[str, list[DeclaredObject]]:
    """What is in files of its own: nothing of few objects."""
    apart = found.declared if len(found.declared) > MOST_IN_ONE_FILE else ()
    return {kind: [*part] for kind, part in groupby(apart, lambda one: one.object.kind)}


def _module(kind: str) -> str:
    return plural(kind).replace(" ", "_")


def _declarations(declared: Sequence[DeclaredObject], form: Form, file_of: str = "") -> str:
    """Imports and declarations. ``file_of``: the kind that the file holds alone, so that it imports the
    others it refers to.
    """
    text, kind, others = "", "", set()
    secret = any(isinstance(value, ConfiguredValue) for one in declared for value in one.inputs.values())
    for one in declared:
        inputs = dict(one.inputs)
        for name, value in inputs.items():
            if file_of and isinstance(value, Reference) and value.kind != file_of:
                others.add(_module(value.kind))
                inputs[name] = replace(value, variable=f"{_module(value.kind)}.{value.variable}")
        text += "\n" * (one.object.kind != kind) + _declaration(replace(one, inputs=inputs), form)
        kind = one.object.kind
    needs_pulumi = secret or form == "native" or any(map(_is_protected, declared))
    imports = "import pulumi\n\n" * needs_pulumi + _IMPORT[form]
    imports += "".join(f"import {module}\n" for module in sorted(others))
    return imports + "\nconfig = pulumi.Config()\n" * secret + text


def _is_protected(declared: DeclaredObject) -> bool:
    """Whether it was bought. What was deleted does not come back: a new one is empty, and costs its price."""
    return isinstance(declared.object.resource, Priced)


def _declaration(declared: DeclaredObject, form: Form) -> str:
    found = declared.object
    arguments = [python_text(declared.name)]
    for name, value in declared.inputs.items():
        if isinstance(value, Reference) and name == f"{found.resource.parent}_id":
            arguments.append(f"{found.resource.parent}={value.variable}")
        else:
            arguments.append(f"{name}={python_text(value)}")
    options = []
    if form == "native":
        options.append(f"import_={python_text(found.id)}")
    elif found.adopt_id:
        arguments.append(f"adopt_id={python_text(found.adopt_id)}")
    if _is_protected(declared):
        options.append("protect=True")
    if options:
        arguments.append(f"opts=pulumi.ResourceOptions({', '.join(options)})")
    result = f"{declared.variable} = " if declared.is_referenced else ""
    call = f"{result}hosting.{class_of(found.kind)}"
    line = f"{call}({', '.join(arguments)})"
    if len(line) > _LINE:
        line = "".join([f"{call}(\n", *(f"    {argument},\n" for argument in arguments), ")"])
    return f"{commented([declared.remark] if declared.remark else [])}{line}\n"


def python_text(value: object) -> str:
    """A value as Python's source has it. Every character that does not print is escaped.

    >>> print(python_text(["it's", True, 7]), python_text('"'), python_text("'\\""))
    ["it's", True, 7] '"' "'\\""
    """
    if isinstance(value, Reference):
        return f"{value.variable}.{value.output}"
    if isinstance(value, ConfiguredValue):
        return f"config.require_secret({python_text(value.variable)})"
    if isinstance(value, list):
        return f"[{', '.join(map(python_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{python_text(key)}: {python_text(item)}' for key, item in value.items())}}}"
    text = repr(value)
    if not isinstance(value, str) or text.startswith('"'):
        return text
    inner = text[1:-1].replace("\\'", "'")
    if '"' not in inner:
        return f'"{inner}"'
    return text if "'" not in inner else '"' + inner.replace('"', '\\"') + '"'


# --- a playbook: one task for each object

_VAULT = "For a password: `ansible-vault encrypt_string`, then password: with the vault's variable."
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


def _steps_of_playbook(found: AccountImport) -> Steps:
    verbs = chain(["create"], repeat("edit"))
    secrets = [
        (f"ansible-vault {verb} secrets.yml", f"add the line {variable}: {one.value_of(field)}")
        for verb, (one, field, variable) in zip(verbs, found.secrets(), strict=False)
    ]
    with_secrets = "--ask-vault-pass --extra-vars @secrets.yml " if secrets else ""
    return (
        (INSTALL_COLLECTION, "once per machine, in a clone of pulumi-hosting"),
        *secrets,
        (f"ansible-playbook --check {with_secrets}site.yml", "nothing is changed: everything is as declared"),
        (f"ansible-playbook {with_secrets}site.yml", "charges nothing, writes nothing"),
    )


def _playbook(found: AccountImport, steps: Steps) -> dict[str, str]:
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
    files = {f"{_module(kind)}.yml": f"---\n{_tasks(part)}" for kind, part in _by_kind(found).items()}
    imports = "".join(f"- ansible.builtin.import_tasks: {name}\n" for name in files)
    tasks = imports or _tasks(found.declared)
    play = "\n".join([*head, "  tasks:", indent(tasks, " " * 4)])
    return {"site.yml": f"{introduction(found, steps, _VAULT)}---\n{play}{remainder(found)}", **files}


def _tasks(declared: Iterable[DeclaredObject]) -> str:
    return "\n".join(
        commented([one.remark] if one.remark else []) + _dumped([_task(one)]) for one in declared
    )


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
