"""What Pulumi programs import: resource classes, output types, and the types of the lookup functions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from generate.render import formatted, render
from pulumi_hosting.client import exceptions
from pulumi_hosting.provider.conversion import snake
from pulumi_hosting.provider.names import class_of
from pulumi_hosting.provider.resource_shape import inputs_of, outputs_of, secrets_of, summary_of, title_of
from pulumi_hosting.provider.stack_settings import STACK_SETTINGS, Setting
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import AnyResource
from pulumi_hosting.schema.fields import Field, Type, fields, nested, type_name
from pulumi_hosting.schema.lookups import LOOKUPS, Lookup
from pulumi_hosting.session import errors

FOLDER = "pulumi_hosting/provider/sdk"
OWNED = (f"{FOLDER}/**/*.py", f"{FOLDER}/*.pyi", "pulumi_hosting/*.pyi")

PLAIN: Mapping[str, str] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "any": "Any",
}
TEMPLATES = {
    "pulumi_hosting/__init__.pyi": "package.pyi.j2",
    "pulumi_hosting/native.pyi": "native.pyi.j2",
    f"{FOLDER}/__init__.py": "__init__.py.j2",
    f"{FOLDER}/args.py": "args.py.j2",
    f"{FOLDER}/declarations/__init__.py": "declarations/__init__.py.j2",
    f"{FOLDER}/dynamic_resources.py": "resources.py.j2",
    f"{FOLDER}/exports.py": "exports.py.j2",
    f"{FOLDER}/lookups.py": "lookups.py.j2",
    f"{FOLDER}/lookups.pyi": "lookups.pyi.j2",
    f"{FOLDER}/native_lookups.py": "lookups.py.j2",
    f"{FOLDER}/native_lookups.pyi": "lookups.pyi.j2",
    f"{FOLDER}/native_resources.py": "resources.py.j2",
    f"{FOLDER}/provider.py": "provider.py.j2",
    f"{FOLDER}/results/__init__.py": "results/__init__.py.j2",
}


def files() -> Mapping[str, str]:
    """The text of every file."""
    types = [lookup.value for lookup in LOOKUPS.values()]
    types += [item.type for resource in RESOURCES.values() for item in outputs_of(resource)]
    filters: dict[str, object] = {
        "annotated": _annotated,
        "area": _area,
        "class_name": lambda resource: class_of(resource.kind),
        "declared": _declared,
        "fields": fields,
        "input": _input,
        "inputs": lambda resource: tuple(item.name for item in inputs_of(resource)),
        "needed": lambda resource: tuple(
            item.name
            for item in _declared(resource)
            if item.required or item.name in resource.Inputs.named_by()
        ),
        "named_by": lambda resource: resource.Inputs.named_by(),
        "output": _output,
        "outputs": outputs_of,
        "parameters": _parameters,
        "plain": _plain,
        "parameter_docs": _parameter_docs,
        "provider_docs": _provider_docs,
        "snake": snake,
        "prose": lambda model: model.__dict__.get("__doc__") or "",
        "secrets": lambda resource: tuple(sorted(secrets_of(resource))),
        "summary": lambda resource: summary_of(resource, str),
        "title": title_of,
        "type_name": type_name,
    }
    values: dict[str, Any] = {
        "belongs": _belongs_to_a_server,
        "errors": _errors(exceptions),
        "stops": [name for name in _errors(errors) if name not in _errors(exceptions)],
        "lookups": list(LOOKUPS.values()),
        "models": nested(types),
        "resources": list(RESOURCES.values()),
        "plain": PLAIN,
        "settings": STACK_SETTINGS,
    }
    texts = {
        name: render(f"sdk/{template}", filters, native="native" in name, **values)
        for name, template in TEMPLATES.items()
    }
    for resource in RESOURCES.values():
        name = f"{FOLDER}/declarations/{resource.kind}.py"
        texts[name] = render("sdk/declarations/resource.py.j2", filters, resource=resource, **values)
    for area in dict.fromkeys(map(_area, values["models"])):
        name = f"{FOLDER}/results/{area}.py"
        texts[name] = render("sdk/results/area.py.j2", filters, area_of_file=area, **values)
    return formatted(texts)


def _area(model: type[BaseModel]) -> str:
    """The file of a result: as the module of its model is called; ``resources`` for what a resource nests."""
    package, _, module = model.__module__.rpartition(".")
    return module if package.endswith(".models") else package.rpartition(".")[2]


def _errors(module: ModuleType) -> list[str]:
    """The names of its classes of errors."""
    return sorted(
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, exceptions.HostingError)
    )


def _provider_docs(settings: Mapping[str, Setting]) -> str:
    """What each setting of a provider means, for editors."""
    lines = [":param resource_name: Name in the stack."]
    for name, setting in settings.items():
        lines.append(f":param {snake(name)}: {setting.description}{' Always a secret.' * setting.secret}")
    return (
        "An account, for ``opts=pulumi.ResourceOptions(provider=…)``. Without one, resources use the account "
        "of the stack's configuration.\n\n" + "\n".join(lines)
    )


# --- resources ----------------------------------------------------------------------------------------------


def _belongs_to_a_server(resource: AnyResource) -> bool:
    """Whether it is deleted with its server, so that a program may give the server in place of its id."""
    return resource.parent == "server"


def _declared(resource: AnyResource) -> Sequence[Field]:
    """The inputs as a program gives them, the required ones first. ``server`` may replace ``server_id``."""
    belongs = _belongs_to_a_server(resource)
    items = [
        replace(item, required=item.required and not (item.name == "server_id" and belongs))
        for item in inputs_of(resource)
    ]
    return sorted(items, key=lambda item: not item.required)


def _parameter_docs(resource: AnyResource) -> str:
    """What each argument means, for editors."""
    server = [":param server: The Server it belongs to, in place of server_id."]
    lines = [
        ":param resource_name: Name in the stack.",
        ":param args: All inputs as one object, in place of keywords.",
        ":param opts: Pulumi's own options.",
        *(server if _belongs_to_a_server(resource) else []),
        *(f":param {item.name}: {item.description}" for item in _declared(resource)),
    ]
    return "\n".join(lines)


# --- lookups ------------------------------------------------------------------------------------------------


def _parameters(lookup: Lookup, *, native: bool, output: bool = False) -> str:
    needed = [f"{item.name}: {_parameter(item, output)}" for item in lookup.arguments if item.required]
    free = [
        f"{item.name}: {_parameter(item, output)} = None" for item in lookup.arguments if not item.required
    ]
    free += ["opts: pulumi.InvokeOptions | None = None"] if native else []
    return ", ".join([*needed, *(["*"] if free else []), *free])


def _parameter(item: Field, output: bool) -> str:
    kind = _given(item.type)
    if item.type.choices and item.type.kind == "string":
        kind += " | str"  # editors offer the known ones; filters take words of later versions too
    kind = f"pulumi.Input[{kind}]" if output else kind
    return kind if item.required else f"{kind} | None"


def _annotated(lookup: Lookup) -> str:
    """A lookup's docstring."""
    parameters = [f":param {item.name}: {item.description}" for item in lookup.arguments if item.description]
    return "\n\n".join([lookup.description, *(["\n".join(parameters)] if parameters else [])])


# --- types --------------------------------------------------------------------------------------------------


def _plain(type: Type) -> str:
    if type.model is not None:
        return type_name(type.model)
    if type.kind == "array" and type.of is not None:
        return f"list[{_plain(type.of)}]"
    if type.kind == "map" and type.of is not None:
        return f"dict[str, {_plain(type.of)}]"
    return PLAIN[type.kind]


def _output(item: Field) -> str:
    return _plain(item.type) if item.required or item.type.kind == "any" else f"{_plain(item.type)} | None"


def _input(item: Field, optional: bool = False) -> str:
    # An output that turns out to be None is the same as no value.
    return (
        f"pulumi.Input[{_eventual(item.type)}]{' | None' if optional else ''}"
        if item.required
        else f"pulumi.Input[{_eventual(item.type)} | None] | None"
    )


def _eventual(type: Type) -> str:
    """A value whose parts may be known later too."""
    if type.kind == "array" and type.of is not None:
        return f"Sequence[pulumi.Input[{_eventual(type.of)}]]"
    if type.kind == "map" and type.of is not None:
        return f"Mapping[str, pulumi.Input[{_eventual(type.of)}]]"
    return f"{_given(type)} | Sequence[pulumi.Input[{_given(type)}]]" if type.several else _given(type)


def _given(type: Type) -> str:
    """A value as a program may give it: the choices, where there are no others."""
    if type.choices:
        return f"Literal[{', '.join(map(repr, type.choices))}]"
    return f"{_plain(type)} | int" if type.is_id else _plain(type)
