"""Reading an answer that is damaged in part: what is decoration becomes None, what is not makes the item, or
the answer, unreadable.

Only answers that failed the strict reading come here. Ids, sums of money, secrets and page cursors are never
given up: an object that lacks one, or has one of a wrong type, is damaged. Everything else that cannot be
read is as if it were absent.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_json

from pulumi_hosting.api import models as m
from pulumi_hosting.api.reasons import holds
from pulumi_hosting.api.secrets import Secret

_ROUNDS = 12  # each gives up at least one level of the deepest object there is
_OBJECTS = frozenset({"server", "domain", "key"})

Chain = list[tuple[Any, object]]


def from_damaged(model: type[m.Response], data: object) -> tuple[m.Response | None, list[ErrorDetails]]:
    """The model read from ``data`` (parsed JSON, changed in place) with decorations given up, and what was
    wrong at first; None if giving up does not help.
    """
    first: list[ErrorDetails] = []
    for _ in range(_ROUNDS):
        try:
            return model.model_validate_json(to_json(data)), first
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
        except ValueError:
            break
        first = first or problems
        if not isinstance(data, dict) or not all(
            _given_up(data, problem) for problem in problems if not _is_echo(problem, problems)
        ):
            break
    return None, first


def item_model(model: type[m.Response]) -> type[m.Response] | None:
    """What a list holds; ``None`` if the model is no list."""
    if not issubclass(model, m.Page | m.Listing):
        return None
    found: type[m.Response] = get_args(model.model_fields["data"].annotation)[0]
    return found


def readable_facts(data: Mapping[str, object]) -> dict[str, Any]:
    """Ids, sums of money and secrets of a damaged answer, by their names; ids of objects inside as
    ``server_id``, ``domain_id``.
    """
    found: dict[str, object] = {}
    for name, value in data.items():
        if name in _OBJECTS and isinstance(value, dict):
            if (id := _id(value.get("id"))) is not None:
                found[f"{name}_id"] = id
        elif name == "id" or name.endswith("_id"):
            if (id := _id(value)) is not None:
                found.setdefault(name, id)
        elif name in _names_of(Secret):
            if isinstance(value, str) and value:
                found[name] = Secret(value)
        elif name in _names_of(Decimal) and isinstance(value, str) and m.is_money(value):
            found[name] = Decimal(value)
    return found


def _id(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= m.INT64 else None


# --- giving up


def _given_up(data: dict[str, object], problem: ErrorDetails) -> bool:
    """Give up what the problem is about, or what it is a part of; False if that must not be done."""
    chain = _chain(data, problem["loc"])
    missing = problem["type"] == "missing"
    named = [problem["loc"][-1]] if missing else [key for _, key in reversed(chain) if isinstance(key, str)]
    name = named[0] if named else ""
    if _is_strict(str(name)):
        return False
    while chain:
        container, key = chain.pop()
        value = container[key]
        if isinstance(container, list) or value is None:
            continue  # a list is given up as a whole; what is None already was not allowed to be
        if key in _OBJECTS and isinstance(value, dict):
            return False
        if _is_strict(str(key)):
            return False
        container[key] = None
        return True
    return False


def _chain(data: Any, loc: tuple[int | str, ...]) -> Chain:
    """From the root to the place of a problem. Parts of the place that are no keys (members of unions,
    validators) are left out.
    """
    chain: Chain = []
    node = data
    for part in loc:
        inside = (isinstance(node, dict) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        )
        if inside:
            chain.append((node, part))
            node = node[part]
    return chain


def _is_echo(problem: ErrorDetails, problems: list[ErrorDetails]) -> bool:
    """Whether the problem only says that an object, which has problems of its own, is not the text a union
    would also take.
    """
    return problem["type"] == "string_type" and any(
        other is not problem
        and len(other["loc"]) > len(problem["loc"])
        and other["loc"][: len(problem["loc"]) - 1] == problem["loc"][:-1]
        for other in problems
    )


def _is_strict(name: str) -> bool:
    return name in {"id", "next_cursor", *_names_of(Decimal), *_names_of(Secret)} or name.endswith("_id")


@cache
def _names_of(kind: type) -> frozenset[str]:
    """Names, as sent, of all fields of answers whose values are of this kind."""
    found: set[str] = set()
    list(m.areas())  # all models, also those that this process has not needed yet
    for model in _answers(m.Response):
        for name, field in model.model_fields.items():
            if holds(kind, field.annotation):
                alias = field.validation_alias
                choices = getattr(alias, "choices", [alias] if isinstance(alias, str) else [])
                found |= {name, *(choice for choice in choices if isinstance(choice, str))}
    return frozenset(found)


def _answers(model: type[m.Response]) -> set[type[m.Response]]:
    return {model}.union(*(_answers(sub) for sub in model.__subclasses__()))
