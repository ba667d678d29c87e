"""What every body is made of: closed requests, open responses, pages and short lists (API document, "General
conventions").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from pulumi_hosting.api.metadata import Meta, OriginalBody
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.api.reasons import holds
from pulumi_hosting.api.secrets import REVEALED

_SHARED = {
    "currency": "ISO 4217 code of the currency of the amounts beside it, such as `EUR`.",
    "balance_after": "Balance of the account after the charge.",
    "message": "Remark of the provider in words; null if there is none.",
}
"""What fields of these names mean in every answer, unless they have a text of their own."""
_WRITTEN = {Decimal: ("a decimal text", ", {} in `currency`"), AwareDatetime: ("RFC 3339", " ({}, UTC)")}
"""How every answer writes money and times. The description of such a field says it, in its own words or in
these, which follow its first clause."""


@dataclass(frozen=True)
class Clears:
    """A mark on a field of a request: ``None`` is sent as ``null``, which clears the object's field.

    ``must_be_given``: leaving the field out clears it too, so the client's method requires it.
    """

    must_be_given: bool = False


class RequestModel(BaseModel):
    """A request body or query. Closed, and strict about types; only fields that were set are sent."""

    model_config = ConfigDict(
        extra="forbid", strict=True, defer_build=True, hide_input_in_errors=True, frozen=True
    )
    example: ClassVar[Mapping[str, object]] = {}
    """A body of this kind, as a class says it: ``class DomainRenew(RequestModel, example={"years": 1})``."""
    printed: ClassVar[Mapping[str, object]] = {}
    """What JSON Schema can say of the rules across fields, which the class checks."""
    null_changes_nothing: ClassVar[bool] = False
    """Whether any field may be null, which leaves it as it is."""

    def __init_subclass__(cls, example: Mapping[str, object] = MappingProxyType({}), **_: object) -> None:
        cls.example = example

    @classmethod
    def clears(cls, name: str) -> bool:
        """Whether null clears the field."""
        return any(isinstance(mark, Clears) for mark in cls.model_fields[name].metadata)

    @classmethod
    def may_be_null(cls, name: str) -> bool:
        """Whether JSON may have null in the field: in others ``None`` means that it is left out."""
        return cls.null_changes_nothing or cls.clears(name)


class PatchModel(RequestModel):
    """The body of a PATCH: at least one field."""

    printed: ClassVar = {"minProperties": 1}

    def model_post_init(self, context: Any) -> None:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")


class Response(BaseModel):
    """An answer. Unknown fields are kept in ``model_extra`` but never printed: they may be secrets of a later
    version.
    """

    # Slots, not private attributes: those cost a Python call per object, and would make equal answers of
    # two calls unequal.
    __slots__ = ("_meta", "_original")

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        defer_build=True,
        hide_input_in_errors=True,
        frozen=True,
        populate_by_name=True,
        revalidate_instances="never",
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for name, field in cls.model_fields.items():
            text = field.description or _SHARED.get(name)
            for kind, (form, words) in _WRITTEN.items():
                if text and holds(kind, field.annotation) and form not in text:
                    text = re.sub(r"(?=[.;]( |$))", words.format(form), text, count=1)
            field.description = text

    @property
    def meta(self) -> Meta | None:
        """Request id, rate limits, sandbox mark of the call that brought this; ``None`` inside of other
        answers and on your own objects.
        """
        return getattr(self, "_meta", None)

    @property
    def raw(self) -> Any:
        """The JSON that this was read from, as the service sent it: names, texts and unknown fields
        included. ``None`` inside of other objects, on copies, and on your own objects.

        Secrets in it are ``Secret``, and objects do not print their values. It is parsed when it is first
        asked for; the items of a list share the text of their page.
        """
        original: tuple[OriginalBody, int | None] | None = getattr(self, "_original", None)
        if original is None:
            return None
        body, index = original
        return body.json() if index is None else body.json()["data"][index]

    def to_dict(self, *, reveal: bool = False) -> dict[str, Any]:
        """The answer as JSON has it, with the API's names of fields: money and times are texts. What
        ``json.dumps`` takes, and ``model_validate_json`` of the same class reads back.

        - ``reveal``: with its secrets in plain text, such as a root password that is shown once. Without it,
          an answer that holds one raises ``PydanticSerializationError``, as ``model_dump(mode="json")`` does.
        """
        return self.model_dump(mode="json", by_alias=True, context=REVEALED if reveal else None)

    def is_same(self, other: object) -> bool:
        """Whether both show the same object: of the same kind, with the same id, whatever else they say. A
        ``Server`` of a list is the same as its ``ServerDetail``. Without an id, whether they are equal.
        """
        kind, id = self._identity()
        return (
            self == other if id is None else isinstance(other, Response) and other._identity() == (kind, id)
        )

    def _identity(self) -> tuple[type, object]:
        """The kind of object, which more detailed models share, and its id."""
        kinds = [kind for kind in type(self).__mro__ if Response in kind.__bases__]
        return kinds[0] if kinds else type(self), getattr(self, "id", None)

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr_args__(self) -> Any:
        extras = self.model_extra or {}
        return [(name, value) for name, value in super().__repr_args__() if name not in extras]


R = TypeVar("R", bound=Response)


class Page(Response, Generic[R]):
    """One page of a list; ``next_cursor`` is ``None`` on the last one."""

    data: list[R] = Field(description="The items of this page, newest first.")
    next_cursor: str | None = optional("What `cursor` takes to read the next page; null on the last one.")


class Listing(Response, Generic[R]):
    """A short list, whole. A live deployment adds ``next_cursor: null`` to some; it is followed should it
    ever be set.
    """

    data: list[R] = Field(description="Every item of the list.")
    next_cursor: str | None = optional("Always null today: the list is whole.")


class PageQuery(RequestModel):
    """``limit`` 1..100, default 50; ``cursor``: the ``next_cursor`` of the previous page, with the same
    filters.
    """

    cursor: str | None = optional("Start with the page of this cursor.")
    limit: Annotated[int, Field(ge=1, le=100)] | None = optional("Items per page, 1 to 100.")
