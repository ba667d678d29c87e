"""A resource as Pulumi sees it: what may be declared, what is shown, what is secret, what a change does."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from pulumi_hosting import resources
from pulumi_hosting.resources.base import AnyResource
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.schema.fields import NUMBER, Field, fields

_WAIT_TIMEOUT = Field(
    "wait_timeout",
    NUMBER,
    required=False,
    secret=False,
    description="Seconds to wait for what the service does later: more than 0, at most 86400; default 600.",
)

_CHANGES = {
    "replaces": "A change replaces it",
    "rebuilds": "`rebuild` decides what a change does",
    "when_creating": "Used at creation only",
    "trigger": "Changing it triggers an action",
    "policy": "Provider-side setting, not sent to the API",
}
"""Fact of a trait → what a change does. The first that holds counts."""


@cache
def inputs_of(resource: AnyResource) -> tuple[Field, ...]:
    """What a declaration may say."""
    own = (
        replace(field, required=False, description=f"{field.description} (Default: the resource's name.)")
        if resource.default_name and field.name == "name"
        else field
        for field in fields(resource.Inputs)
    )
    return (*own, _WAIT_TIMEOUT)


@cache
def outputs_of(resource: AnyResource) -> tuple[Field, ...]:
    """What a resource shows: the resource's state, then whatever else was declared. The id is Pulumi's
    own.
    """
    state = tuple(field for field in fields(resource.State) if field.name != "id")
    shown = {field.name for field in state}
    declared = (
        replace(field, required=False) for field in fields(resource.Inputs) if field.name not in shown
    )
    return (*state, *declared)


@cache
def secrets_of(resource: AnyResource) -> frozenset[str]:
    """The fields, declared or shown, whose values are never shown."""
    return frozenset(field.name for field in (*inputs_of(resource), *outputs_of(resource)) if field.secret)


def title_of(resource: AnyResource) -> str:
    """What it is, in a sentence: how its own file begins."""
    text = inspect.cleandoc(sys.modules[f"{resources.__name__}.{resource.kind}"].__doc__ or resource.title)
    return text.split("\n\n")[0]


def changes_of(resource: AnyResource) -> Mapping[str, tuple[str, ...]]:
    """What a change of each input does, in words, with the inputs it holds for."""
    found: dict[str, tuple[str, ...]] = {}
    for name in resource.Inputs.model_fields:
        trait = resource.Inputs.trait(name)
        words = next((text for fact, text in _CHANGES.items() if getattr(trait, fact)), "Changes in place")
        found[words] = (*found.get(words, ()), name)
    return found


def summary_of(resource: AnyResource, spell: Callable[[str], str]) -> str:
    """What making it costs and what changing it does, with the fields spelled as the reader's language
    has them.
    """
    paid = "Creating it charges the account balance. " if isinstance(resource, Priced) else ""
    return paid + " ".join(
        f"{words}: {', '.join(map(spell, names))}." for words, names in changes_of(resource).items()
    )
