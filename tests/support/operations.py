"""What an operation is called with where a test lists nothing for it: objects that exist, and the examples of
its fields.

So every suite that calls all operations calls a new one too. Before a list is read, an object is made, if the
API can make one there.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from pulumi_hosting.api.operations import OPERATIONS, Operation

Makers = Mapping[str, Callable[[], int]]
"""By path parameter: makes an object and returns its id."""


@dataclass(frozen=True)
class Arguments:
    ids: tuple[int, ...] = ()
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None

    def path(self, operation: Operation) -> str:
        """The path with its ids and query, below ``/v1``."""
        path = operation.path.format(**dict(zip(operation.path_parameters, self.ids, strict=True)))
        return path + (
            "?" + "&".join(f"{name}={value}" for name, value in self.query.items()) if self.query else ""
        )


def arguments(operation: Operation, makers: Makers, make: Callable[[Operation, Arguments], int]) -> Arguments:
    """``make`` calls an operation that creates an object, and returns its id: for what ``makers`` lacks."""

    def made(path: str) -> int | None:
        creator = next(
            (row for row in OPERATIONS if row.method == "POST" and row.path == path and 201 in row.responses),
            None,
        )
        return None if creator is None else make(creator, arguments(creator, makers, make))

    ids = []
    for name in operation.path_parameters:
        id = makers[name]() if name in makers else made(operation.path.partition(f"/{{{name}}}")[0])
        if id is None:
            raise LookupError(
                f"{operation.id}: nothing makes what {{{name}}} stands for. Next: list "
                "the operation in the test"
            )
        ids.append(id)
    if operation.paging != "none" and not ids:
        with suppress(LookupError):  # where no example says how to make one, the list may be empty
            made(operation.path)
    return Arguments(
        tuple(ids), examples(operation.query), examples(operation.request) if operation.request else None
    )


def examples(model: type[BaseModel] | None) -> dict[str, Any]:
    """Fields with an example of their own (``Field(examples=[…])``)."""
    infos = {} if model is None else model.model_fields
    missing = [name for name, info in infos.items() if info.is_required() and not info.examples]
    if missing and model is not None:
        raise LookupError(
            f"{model.__name__}: no example of {', '.join(missing)}. Next: add examples=[…], or list the "
            f"operation in the test"
        )
    return {name: info.examples[0] for name, info in infos.items() if info.examples}
