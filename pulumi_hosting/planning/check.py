"""What a user wrote, brought into one normal form, or said to be wrong field by field. Pure: nothing is
asked.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError, create_model

from pulumi_hosting.api.reasons import reasons as reasons_of
from pulumi_hosting.resources.base import AnyResource, Inputs


@dataclass(frozen=True, slots=True)
class Checked:
    """Declared inputs after validation.

    - ``inputs``: the whole declaration; None if something is wrong or not known yet.
    - ``failures``: field → reason.
    - ``known``: the inputs without what is not known yet; None if something is wrong.
    - ``unknown``: the fields whose values are only known later.
    - ``raw``: the known values as they were given; only if something is wrong.
    """

    inputs: Any
    failures: Mapping[str, str]
    known: Any = field(default=None, repr=False)
    unknown: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def values(self) -> Mapping[str, Any]:
        """The known fields in plain values and in normal form, secrets revealed; as they were given if
        something is wrong.
        """
        if self.known is None:
            return self.raw
        values: Mapping[str, Any] = self.known.given()
        return values


def check(resource: AnyResource, raw: Mapping[str, Any], unknown: Collection[str] = ()) -> Checked:
    """Validate ``raw`` and bring it into normal form. ``unknown``: fields whose values are only known
    later; they are not judged.
    """
    model: type[Inputs] = resource.Inputs
    named = {
        field for field, name in model.named_by().items() if field not in raw and name in {*raw, *unknown}
    }
    later = frozenset(unknown) | named
    known = {name: value for name, value in raw.items() if name not in later}
    failures = {name: _no_input(name, model) for name in later if name not in model.model_fields}
    open_fields = later & frozenset(resource.Inputs.model_fields)
    try:
        inputs = _partial(model, open_fields).model_validate(known)
    except ValidationError as error:
        return Checked(None, {**failures, **reasons(error, model)}, None, later, known)
    return Checked(None if open_fields else inputs, failures, inputs, later)


def check_others(
    resource: AnyResource, raw: Mapping[str, Any], unknown: Collection[str], failures: Collection[str]
) -> Checked:
    """Like ``check``, of the fields that are not wrong already."""
    rest = {name: value for name, value in raw.items() if name not in failures}
    return check(resource, rest, {*unknown, *resource.Inputs.model_fields.keys() & failures})


def declared(resource: AnyResource, raw: Mapping[str, Any]) -> Checked:
    """Like ``check``, for an object that exists, which need not be described whole: what only a new one
    needs may be absent, and reads None.
    """
    absent = frozenset(
        name for name, info in resource.Inputs.model_fields.items() if info.is_required() and name not in raw
    )
    model: type[Inputs] = resource.Inputs
    try:
        inputs = _partial(model, absent).model_validate(dict(raw))
    except ValidationError as error:
        return Checked(None, reasons(error, model), raw=raw)
    return Checked(inputs, {}, inputs)


def unsendable(resource: AnyResource, values: Mapping[str, Any]) -> dict[str, str]:
    """Field → reason, for what the account may show and a request cannot carry: asked of ``values`` that
    would be sent.
    """
    wrong = {}
    for name in values.keys() & resource.Inputs.model_fields.keys():
        if (rule := resource.Inputs.trait(name).sendable) and isinstance(values[name], str):
            try:
                rule(values[name])
            except ValueError as error:
                wrong[name] = str(error)
    return wrong


@lru_cache(maxsize=256)
def _partial(inputs: type[Inputs], unknown: frozenset[str]) -> type[Inputs]:
    """The same model, in which ``unknown`` fields may be anything: what is known is still checked, alone and
    together.
    """
    if not unknown:
        return inputs
    anything: dict[str, Any] = dict.fromkeys(unknown, (Any, None))
    made: type[Inputs] = create_model(inputs.__name__, __base__=inputs, **anything)
    return made


def reasons(error: ValidationError, model: type[BaseModel]) -> dict[str, str]:
    """Field of ``model`` → reason. Of refused values only numbers in fields for numbers are repeated."""
    named_by = model.named_by() if issubclass(model, Inputs) else {}
    return reasons_of(
        error,
        model.model_fields,
        strange=lambda name: _no_input(name, model),
        absent=lambda name: (
            f"is required, unless {named_by[name]} names it" if name in named_by else "is required"
        ),
    )


def _no_input(name: str, model: type[BaseModel]) -> str:
    like = get_close_matches(name, model.model_fields)
    return f"is not an input of this resource{f'; did you mean {like[0]}?' if like else ''}"
