"""The client's services from the table of operations: a class for each group, a method for each operation;
and the same awaited."""

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from typing import Any, Literal

from pydantic import BaseModel

from generate import unasync
from generate.render import formatted, render
from pulumi_hosting.api.models.body import Clears
from pulumi_hosting.api.operations import AREAS, GROUPS, OPERATIONS, Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import CODES, error_class
from pulumi_hosting.provider.names import class_of
from pulumi_hosting.resources.base import mentions_secret
from pulumi_hosting.schema.fields import fields, id_of

FOLDERS: Mapping[str, Mapping[str, str]] = {
    "services": {"prefix": "", "async": "", "await": ""},
    "async_services": {"prefix": "Async", "async": "async ", "await": "await "},
}
"""Of ``Client`` and of ``AsyncClient``, with what stands before names, definitions and calls."""
OWNED = tuple(f"pulumi_hosting/client/{folder}/*.py" for folder in FOLDERS)

WAITS = {"orders": "OrderWait"}
"""Base classes, written by hand, of services that do more than single calls. ``OrderWait`` is in
``client/order_wait.py``."""
META = "meta"
"""The group of the operations that are methods of the client itself."""
KEY = (
    "16 to 128 printable characters; made when absent. A repetition with the same key and arguments "
    "is not carried out twice."
)
RETRIES = {
    "safe": "",
    "idempotency_key": " Retried with the same Idempotency-Key.",
    "idempotent": " Not retried automatically.",
    "never": " Not retried automatically.",
}


@dataclass
class Service:
    """A class of the client. ``path``: its place in the client, without ``client.``."""

    path: str
    methods: list[Operation] = field(default_factory=list)
    parts: list["Service"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{class_of(self.attribute)}Service"

    @property
    def attribute(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def base(self) -> str:
        return WAITS.get(self.path, "Service")

    @property
    def text(self) -> str:
        return GROUPS[self.path]

    @property
    def shortcuts(self) -> "list[Shortcut]":
        """What is added for people: a method for each value of an operation's only field, and search by
        name."""
        found = [
            Shortcut(value, operation, f"{name}={value!r}")
            for operation in self.methods
            for name, value in _choices(operation)
        ]
        named = [
            Shortcut("get_by_name", operation, "")
            for operation in self.methods
            if operation.call == f"{self.path}.list" and "name" in _item(operation).model_fields
        ]
        return found + named


@dataclass
class Shortcut:
    """A method that calls the method of an ``operation``."""

    name: str
    operation: Operation
    argument: str

    @property
    def item(self) -> str:
        return f"m.{_item(self.operation).__name__}"

    @property
    def what(self) -> str:
        """What the list is of, for messages."""
        group = self.operation.call.split(".")[0]
        return {"ssh_keys": "SSH key", "keys": "API key"}.get(group, group.rstrip("s")) + " name"


def files() -> Mapping[str, str]:
    """The text of every file."""
    services = _services()
    filters: dict[str, object] = {
        "arguments": _arguments,
        "documentation": _documentation,
        "ids": lambda names: ", ".join(["self", *(f"{name}: int" for name in names)]),
        "name": lambda operation: operation.call.rpartition(".")[2],
        "parameters": lambda operation: ", ".join(_parameters(operation)),
        "result": _result,
        "secrets": lambda operation: [
            name
            for name, info in _inputs(operation).items()
            if mentions_secret(info.annotation) or name == "url"  # which may hold a password
        ],
    }
    groups = [[service, *service.parts] for service in services.values() if "." not in service.path]
    texts = unasync.texts()
    for folder, words in FOLDERS.items():
        path = f"pulumi_hosting/client/{folder}"
        for group in groups:
            texts[f"{path}/{group[0].path}.py"] = render(
                "services/service.py.j2", filters, services=[*reversed(group)], area=_area(group[0]), **words
            )
        texts[f"{path}/__init__.py"] = render(
            "services/__init__.py.j2",
            filters,
            services=[group[0] for group in groups],
            folder=folder,
            **words,
        )
    return formatted(texts)


def _area(service: Service) -> str:
    """The module with the rows of its operations."""
    return next(
        area
        for area in AREAS
        if service.methods[0] in import_module(f"pulumi_hosting.api.operations.{area}").OPERATIONS
    )


def _services() -> Mapping[str, Service]:
    found: dict[str, Service] = {}
    for operation in OPERATIONS:
        path = operation.call.rpartition(".")[0] or META
        if path not in found:
            found[path] = Service(path)
            if "." in path:
                found[path.rpartition(".")[0]].parts.append(found[path])
        found[path].methods.append(operation)
    return found


# --- a method -----------------------------------------------------------------------------------------------


def _inputs(operation: Operation) -> Mapping[str, Any]:
    """The fields of query and body."""
    models: list[type[BaseModel]] = [
        model for model in (operation.query, operation.request) if model is not None
    ]
    return {name: info for model in models for name, info in model.model_fields.items()}


def _arguments(operation: Operation) -> str:
    """What a method passes to the client."""
    parts = [f'ROWS["{operation.id}"]', *operation.path_parameters]
    for name, model in (("query", operation.query), ("body", operation.request)):
        if model is not None:
            parts.append(f"{name}={{{', '.join(f'{key!r}: {key}' for key in model.model_fields)}}}")
    return ", ".join([*parts, *(f"{name}={name}" for name in _options(operation))])


def _options(operation: Operation) -> Mapping[str, tuple[str, str]]:
    """Arguments that are no fields: type and meaning of each; they default to None."""
    key = {"idempotency_key": ("str", KEY)} if operation.is_keyed else {}
    most = {"max_items": ("int", "Read at most so many; `limit` is what one request asks for.")}
    return key | (most if operation.paging == "cursor" else {})


def _parameters(operation: Operation) -> Iterator[str]:
    yield "self"
    yield from (f"{name}: int" for name in operation.path_parameters)
    keywords = []
    for name, info in _inputs(operation).items():
        clears = next((mark for mark in info.metadata if isinstance(mark, Clears)), None)
        kind = _type(info.annotation) + (" | None" if clears else "")
        if kind.startswith("Literal['") and operation.query and name in operation.query.model_fields:
            kind += " | str"  # the filters of the service grow
        required = info.is_required() or (clears is not None and clears.must_be_given)
        keywords.append((not required, f"{name}: {kind}" if required else f"{name}: Given[{kind}] = UNSET"))
    keywords += [(True, f"{name}: {kind} | None = None") for name, (kind, _) in _options(operation).items()]
    if keywords:
        yield "*"
        yield from (text for _, text in sorted(keywords, key=lambda keyword: keyword[0]))


def _type(annotation: Any) -> str:
    """A field's type as an argument: wider than the model's where the client converts it. Never ``None``."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(part) for part in arguments if part is not type(None))
    if origin is Literal:
        return f"Literal[{', '.join(repr(value) for value in arguments)}]"
    if origin is list:
        return f"Sequence[{_type(arguments[0])}]"
    if origin is dict:
        return f"Mapping[{_type(arguments[0])}, {_type(arguments[1])}]"
    wider = {Secret: "str | Secret", Decimal: "Decimal | str", datetime: "datetime"}
    name: str = wider.get(annotation) or (
        "datetime" if annotation.__name__ == "AwareDatetime" else annotation.__name__
    )
    return name


def _choices(operation: Operation) -> Iterator[tuple[str, str]]:
    """The name and each value of the only field of a body, where that is a closed set of words."""
    model = operation.request
    if model is None or len(model.model_fields) != 1:
        return
    ((name, info),) = model.model_fields.items()
    if typing.get_origin(info.annotation) is Literal and info.is_required():
        yield from ((name, value) for value in typing.get_args(info.annotation) if isinstance(value, str))


def _item(operation: Operation) -> type[BaseModel]:
    """The model of a list's items."""
    (page, *_) = (model for model in operation.responses.values() if model is not None)
    (item,) = typing.get_args(page.model_fields["data"].annotation)
    found: type[BaseModel] = item
    return found


def _result(operation: Operation) -> str:
    found = list(dict.fromkeys(model for model in operation.responses.values() if model is not None))
    if operation.paging != "none":
        return f"{'Pages' if operation.paging == 'cursor' else 'Items'}[m.{_item(operation).__name__}]"
    return (
        " | ".join({bytes: "File", dict: "Document"}.get(model) or f"m.{model.__name__}" for model in found)
        or "Done"
    )


def _documentation(operation: Operation) -> str:
    scopes = " and ".join(f"``{scope}``" for scope in operation.scopes)
    access = f"Scope {scopes}." if scopes else "Any valid key." if operation.auth else "Needs no key."
    cost = (
        " Expensive."
        if operation.expensive
        else " Expensive on some deployments."
        if operation.live_expensive
        else ""
    )
    for name, values in operation.expensive_when.items():
        cost += " Expensive with " + " or ".join(f"``{name}={value!r}``" for value in values) + "."
    for limit in operation.limits:
        cost += f" At most {limit.calls} calls in {limit.seconds} seconds for one ``{limit.per}``."
    sandbox = " Not for test keys." if operation.sandbox == "forbidden" else ""
    classes = {error_class(CODES[code].status, code).__name__: None for code in operation.codes}
    if operation.path_parameters:
        classes["NotFound"] = None
    raises = f" Raises {', '.join(f'``{name}``' for name in classes)}." if classes else ""
    document = f' (API document, "{operation.method} {operation.path}")'
    parts = [
        f"{operation.summary}.",
        operation.description,
        f"{access}{cost}{RETRIES[operation.retry]}{sandbox}{raises}{document}",
    ]
    parameters = "\n".join(f":param {name}: {text}" for name, text in _described(operation) if text)
    return "\n\n".join(part for part in (*parts, parameters) if part)


def _described(operation: Operation) -> Iterator[tuple[str, str]]:
    yield from ((name, id_of(name)) for name in operation.path_parameters)
    for model in (operation.query, operation.request):
        if model is not None:
            yield from ((item.name, item.description) for item in fields(model))
    yield from ((name, text) for name, (_, text) in _options(operation).items())
