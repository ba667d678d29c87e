"""The account as declarations: what a program or a playbook must say so that it manages what exists, and
changes nothing of it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from textwrap import wrap
from urllib.parse import urlsplit

from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.exactly_once.address_list import plain_address
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import shown_inputs
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.reports.account_objects import AccountObject, AccountObjects
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import AnyResource, Inputs
from pulumi_hosting.resources.powers import is_provisional, natural_key
from pulumi_hosting.session.text import holds_secrets


@dataclass(frozen=True, slots=True)
class Reference:
    """An ``output`` of another declared object, which ``variable`` names."""

    variable: str
    kind: str
    output: str


@dataclass(frozen=True, slots=True)
class ConfiguredValue:
    """A value that may be secret and is not written: the configuration has it under ``variable``."""

    variable: str


@dataclass(frozen=True, slots=True)
class DeclaredObject:
    """One object as it is to be declared.

    - ``name``: unique among the objects of its kind; ``variable``: unique among all.
    - ``inputs``: what the account shows of it; a value of another declared object is a ``Reference``,
      one that may be secret a ``ConfiguredValue``.
    - ``is_unique``: what is declared is enough to find it: no other object has its natural key.
    - ``is_referenced``: whether another object refers to it.
    """

    object: AccountObject
    name: str
    variable: str
    inputs: JsonObject
    is_unique: bool
    is_referenced: bool

    def value_of(self, field: str) -> str:
        """What a person is asked for."""
        return f"the {field} of {self.object.resource.title} {self.object.id}"

    @property
    def remark(self) -> str:
        """What a person should know before taking it over; empty where there is nothing."""
        if self.object.tag is None:
            return ""
        return (
            f"{self.object.resource.title} {self.object.id} carries the ownership tag {self.object.tag}: a "
            "stack manages it. Next: leave it out here, or there"
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An object that is not declared, or, where it is declared, the ``field`` that is not; and why."""

    object: AccountObject
    reason: str
    field: str | None = None

    def __str__(self) -> str:
        found = self.object
        name = f" ({found.name})" if found.name and found.name != found.id else ""
        return f"{found.resource.title} {found.id}{name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class AccountImport:
    """Everything that can be declared, servers first; what is left out; kind → why it could not be read."""

    declared: tuple[DeclaredObject, ...]
    left_out: tuple[LeftOut, ...]
    unread: Mapping[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether every object is declared."""
        return not self.unread and all(one.field for one in self.left_out)

    def secrets(self) -> list[tuple[DeclaredObject, str, str]]:
        """What the configuration must have: the object, its field, the variable."""
        return [
            (one, name, value.variable)
            for one in self.declared
            for name, value in one.inputs.items()
            if isinstance(value, ConfiguredValue)
        ]

    def counts(self) -> dict[str, int]:
        """How many objects of each kind are declared."""
        return dict(Counter(one.object.kind for one in self.declared))


def account_import(account: AccountObjects) -> AccountImport:
    """Declares every object of the account. An order under way, and what does not fit the inputs of its
    resource, is left out.
    """
    found: list[tuple[AccountObject, dict[str, object]]] = []
    left_out: list[LeftOut] = []
    for one in sorted(account, key=_by_id):
        inputs, missing = _inputs(one)
        left_out += missing
        if inputs is not None:
            found.append((one, inputs))
    objects = [one for one, _ in found]
    names = _unique([(one.kind, _readable(one)) for one in objects], objects)
    variables = _unique([("", _variable(*named)) for named in zip(objects, names, strict=True)], objects)
    taken = Counter(_natural_values(one) for one in account)
    references = _references(zip(objects, variables, strict=True))
    filled = [
        _filled(inputs, references, variable) for (_, inputs), variable in zip(found, variables, strict=True)
    ]
    used = {value.variable for inputs in filled for value in inputs.values() if isinstance(value, Reference)}
    declared = (
        DeclaredObject(one, name, variable, inputs, taken[_natural_values(one)] == 1, variable in used)
        for one, name, variable, inputs in zip(objects, names, variables, filled, strict=True)
    )
    return AccountImport(tuple(declared), tuple(left_out), account.unread)


def unreadable_inputs(resource: AnyResource) -> tuple[str, ...]:
    """The inputs that the API never shows, and that an existing object does not need."""
    model: type[Inputs] = resource.Inputs
    return tuple(
        name
        for name in model.model_fields
        if model.trait(name).write_only or (name in model.secret_fields() and not model.trait(name).trigger)
    )


# --- inputs ------------------------------------------------------------------------------------------------


def _inputs(found: AccountObject) -> tuple[dict[str, object] | None, list[LeftOut]]:
    """The inputs that the account shows, and those that no declaration may hold. None where the object
    cannot be declared.
    """
    resource, state = found.resource, found.state
    if is_provisional(resource, state):
        return None, [LeftOut(found, "its order is under way. Next: import it when it is delivered")]
    shown = {name: state.values()[name] for name in shown_inputs(resource, state)}
    shown |= {"months": found.months} if found.months else {}
    model: type[Inputs] = resource.Inputs
    # What names the object first, then the fields in the order of the resource.
    order = dict.fromkeys((*natural_key(resource), *model.model_fields))
    inputs = {
        name: shown[name]
        for name in order
        if name in shown and shown[name] != model.model_fields[name].default
    }
    # Without these the object would be renamed, or another one be meant.
    naming = (*natural_key(resource), *(("name",) if resource.default_name else ()))
    dropped: list[LeftOut] = []
    while failures := check(resource, inputs).failures:
        field, reason = next(iter(failures.items()))
        what = f"{field} {reason}".strip()
        if field not in inputs or field in naming or model.model_fields[field].is_required():
            step = f"Next: correct its {field} in the control panel and import again, or manage it there"
            return None, [LeftOut(found, f"it cannot be declared: {what}. {step}")]
        del inputs[field]
        step = "Next: correct it in the control panel, then declare it"
        dropped.append(LeftOut(found, f"declared without {field}, which {reason}. {step}", field))
    return inputs, dropped


def _natural_values(found: AccountObject) -> tuple[str, ...]:
    """The natural key, in one spelling; what finds the object without an id."""
    values, model = found.state.values(), found.resource.Inputs
    spelled = []
    for field in natural_key(found.resource):
        value, normal = str(values.get(field) or ""), model.trait(field).normal
        with suppress(ValueError):  # what is no input at all has one spelling
            value = normal(value) if normal and value else value
        spelled.append(value)
    return (found.kind, *spelled)


# --- references --------------------------------------------------------------------------------------------


def _references(objects: Iterable[tuple[AccountObject, str]]) -> dict[tuple[str, ...], Reference]:
    """Where a declared object shows a value that others are declared with: (field, value) → the id of a
    server, (``address``, server, value) → one of its addresses.
    """
    known: dict[tuple[str, ...], Reference] = {}
    for found, variable in objects:
        values = found.state.values()
        if found.resource.parent is None:
            known[f"{found.kind}_id", found.id] = Reference(variable, found.kind, "id")
        for output, server in (("ip", found.id), ("address", values.get("server_id"))):
            if values.get(output) and server and "domain" not in values:
                with suppress(ValueError):
                    address = plain_address(values[output])
                    known["address", server, address] = Reference(variable, found.kind, output)
    return known


def _filled(
    inputs: JsonObject, references: Mapping[tuple[str, ...], Reference], variable: str
) -> dict[str, object]:
    """The inputs, with references, and without what may be secret."""

    def value_of(name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if name == "url" and holds_secrets(value):
            return ConfiguredValue(f"{variable}_{name}")
        place = (name, inputs.get("server_id", ""), value) if name == "address" else (name, value)
        return references.get(place, value)

    return {name: value_of(name, value) for name, value in inputs.items()}


# --- names -------------------------------------------------------------------------------------------------


def _by_id(found: AccountObject) -> tuple[int, list[int]]:
    """Sorts each kind by its ids, so that what comes later stands at the end of its kind."""
    return list(RESOURCES).index(found.kind), [int(part) for part in re.findall(r"\d+", found.id)]


def _readable(found: AccountObject) -> str:
    """What people call it, in letters that need no quotes. Of a URL the host: the rest may be a secret."""
    name = found.name
    if "://" in name:
        name = urlsplit(name).hostname or ""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or found.kind.replace("_", "-")


def _variable(found: AccountObject, name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", f"{found.kind}_{name}".lower()).strip("_")


def _unique(wanted: Sequence[tuple[str, str]], objects: Iterable[AccountObject]) -> list[str]:
    """The name of each object, wanted within a scope; where several have one name, with the id behind it."""
    count = Counter(wanted)
    used = {named for named, number in count.items() if number == 1}
    names = []
    for (scope, name), found in zip(wanted, objects, strict=True):
        unique = name
        if count[scope, name] > 1:
            separator = "-" if "-" in name or "_" not in name else "_"
            unique = f"{name}{separator}{found.id.replace('/', separator)}"
            while (scope, unique) in used:
                unique += f"{separator}x"
            used.add((scope, unique))
        names.append(unique)
    return names


# --- what the files begin and end with


Steps = tuple[tuple[str, str], ...]
"""Commands in order, each with what it does."""


def commented(lines: Iterable[str]) -> str:
    """The lines as comments of Python and of YAML. Nothing that the account shows can end a comment."""
    return "".join(f"# {clean_text(line)}".rstrip() + "\n" for line in lines)


def next_steps(steps: Steps) -> list[str]:
    """The commands in one column, what they do in the next."""
    width = max(len(command) for command, _ in steps)
    return [f"{command.ljust(width)}  # {does}" if does else command for command, does in steps]


def introduction(found: AccountImport, steps: Steps, secrets: str) -> str:
    """The comment that a file begins with. ``secrets``: how to declare what the API does not show."""
    hidden = "; ".join(
        f"{', '.join(fields)} of a {RESOURCES[kind].title}"
        for kind in found.counts()
        if (fields := unreadable_inputs(RESOURCES[kind]))
    )
    lines = [
        "Everything on the account, as `pulumi-hosting import` found it. HOSTING_API_KEY and",
        "HOSTING_BASE_URL name the account.",
        "",
        "Next:",
        *(f"  {line}" for line in next_steps(steps)),
    ]
    if hidden:
        missing = f"Not shown by the API, not needed, and so not written: {hidden}. {secrets}"
        lines += ["", *wrap(missing, 90, break_long_words=False, break_on_hyphens=False)]
    return commented(lines)


def remainder(found: AccountImport) -> str:
    """The comment that a file ends with: what is on the account and not in it. Empty where nothing is."""
    lines = [f"  {one}" for one in found.left_out]
    lines += [f"  every {RESOURCES[kind].title}: {reason}" for kind, reason in found.unread.items()]
    return commented(["", "Not in this file:", *lines]).removeprefix("#") if lines else ""
