"""Every field that users see says what it means: in RETURN blocks, Pulumi's outputs, the OpenAPI document."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, Field

from generate.collection import Module, modules
from generate.returns import contents
from pulumi_hosting.actions import ACTIONS
from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.fields import fields, nested, type_of
from pulumi_hosting.schema.lookups import LOOKUPS

# Words that say nothing of a field: they are left out before a description is compared with names.
EMPTY_WORDS = {
    *("a", "an", "and", "are", "at", "be", "by", "for", "has", "have", "in", "is", "it", "its", "no", "not"),
    *("of", "on", "one", "or", "other", "that", "the", "this", "to", "was", "which", "whose", "with"),
    *("amount", "code", "currency", "decimal", "field", "id", "iso", "name", "number", "object", "rfc"),
    *("text", "time", "utc", "value"),
}
RULE = 'a description says more than the field\'s name (CONTRIBUTING.md, "Add an operation"). It says only'
SAME_EVERYWHERE = {
    *("auto_renew", "balance_after", "currency", "gateway", "message", "min_years", "mode", "netmask"),
    *("privacy", "scopes"),
}
"""Fields that mean the same in every object that has them."""


def shown_models() -> tuple[type[BaseModel], ...]:
    """Every model whose fields reach a RETURN block or an output of Pulumi."""
    shown: list[type[BaseModel]] = [resource.State for resource in RESOURCES.values()]
    shown += [action.Result for action in ACTIONS.values()]
    found = nested([*map(type_of, shown), *(lookup.value for lookup in LOOKUPS.values())])
    return tuple(found)


def own_descriptions(models: tuple[type[BaseModel], ...]) -> Iterator[tuple[type, str, str]]:
    """Each model that declares a field, with the field's name and description."""
    for model in models:
        for name, info in model.model_fields.items():
            declaring = next(base for base in model.__mro__ if name in inspect.get_annotations(base))
            yield declaring, name, info.description or ""


def content_words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower()) if word not in EMPTY_WORDS}


def source(model: type[BaseModel]) -> str:
    """The file that declares a model."""
    return f"{model.__module__.replace('.', '/')}.py"


@pytest.mark.parametrize("model", shown_models(), ids=lambda model: model.__name__)
def test_every_description_says_more_than_the_names(model: type[BaseModel]) -> None:
    names = " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", model.__name__))
    for field in fields(model):
        said = content_words(field.description) - content_words(f"{names} {field.name.replace('_', ' ')}")
        assert said, f"{source(model)}: {model.__name__}.{field.name}: {RULE} {field.description!r}"


def returned(entries: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Every entry of a RETURN section, the inner ones too: its path and its description."""
    for name, entry in entries.items():
        yield f"{path}.{name}", entry["description"]
        yield from returned(entry.get("contains", {}), f"{path}.{name}")


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_no_entry_of_a_return_section_restates_its_name(module: Module) -> None:
    for path, description in returned(module.returns, module.name):
        name = path.rpartition(".")[2].replace("_", " ")
        said = content_words(description) - content_words(name)
        where = f"RETURN of {module.name}, written from its models and generate/modules/*.yml"
        assert said, f"{where}: {path}: {RULE} {description!r}"


def test_fields_of_different_meaning_have_different_descriptions() -> None:
    sharing: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for model, name, description in own_descriptions(shown_models()):
        sharing[description].add((model.__name__.removesuffix("State"), name))
    for description, users in sharing.items():
        names = {name for _, name in users}
        assert len(names) == 1, f"{description!r}: {users}"
        shortest = min((model for model, _ in users), key=len)
        of_one_object = all(shortest in model for model, _ in users)
        assert names <= SAME_EVERYWHERE or of_one_object, f"{description!r}: {users}"


def test_every_body_of_the_api_is_described() -> None:
    answers = [model for row in OPERATIONS for model in row.responses.values() if model is not None]
    bodies = [body for row in OPERATIONS for body in (row.query, row.request) if body is not None]
    missing = {
        f"{model.__name__}.{name}"
        for model in nested([type_of(body) for body in (*answers, *bodies) if isinstance(body, type)])
        for name, info in model.model_fields.items()
        if not info.description
    }
    assert missing == set()


def test_a_field_without_a_description_stops_the_generator() -> None:
    class Sample(m.Response):
        total: m.Money = Field(description="Sum of the parts.")
        paid_at: m.Timestamp | None = None

    with pytest.raises(LookupError, match=r"Sample\.paid_at has no description"):
        contents(Sample, "sample")
