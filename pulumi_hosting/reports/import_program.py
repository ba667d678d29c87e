"""An account as a Pulumi program in Python, with dynamic resources or with the native provider."""

import re
from collections.abc import Mapping
from typing import Literal

from pulumi_hosting.provider.names import class_of
from pulumi_hosting.reports.account_import import (
    AccountImport,
    ConfiguredValue,
    DeclaredObject,
    Reference,
    Steps,
    Written,
    commented,
    introduction,
    next_steps,
    remainder,
)
from pulumi_hosting.resources.powers import Priced

FILES = ("Pulumi.yaml", "__main__.py")
Form = Literal["dynamic", "native"]
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
_LIMIT = """\
config:
  # Nothing is ordered, not even in place of what was deleted. To order, raise it for the stack:
  # pulumi config set hosting:maxCharge 25.00
  hosting:maxCharge: "0.00"
"""


def _steps(found: AccountImport, form: Form) -> Steps:
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


def program(found: AccountImport, form: Form, project: str) -> Written:
    """``project``: the name of the Pulumi project, made fit."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip("-.") or "account"
    steps = _steps(found, form)
    settings = commented(["Next:", *(f"  {line}" for line in next_steps(steps))])
    files = {
        "Pulumi.yaml": f"{settings}name: {python_text(name)}\nruntime: python\n{_LIMIT}",
        "__main__.py": _main(found, form, steps),
    }
    return Written(files, steps)


def _main(found: AccountImport, form: Form, steps: Steps) -> str:
    secrets, protects = found.secrets(), any(_is_protected(declared) for declared in found.declared)
    imports = {
        "dynamic": ("import pulumi\n\n" if secrets or protects else "")
        + "import pulumi_hosting as hosting\n",
        "native": "import pulumi\n\nfrom pulumi_hosting import native as hosting\n",
    }
    parts = [
        introduction(found, steps, _SECRETS),
        commented(["", *_AFTERWARDS[form], *(_PROTECTED if protects else ())]),
        "\n",
        imports[form],
        "\nconfig = pulumi.Config()\n" if secrets else "",
    ]
    kind = None
    for declared in found.declared:
        if declared.object.kind != kind:
            parts.append("\n")
        kind = declared.object.kind
        parts.append(_declaration(declared, form))
    return "".join(parts) + remainder(found)


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
