"""The contract of a resource: its fields with their traits, its state, and four methods.

    read     the object by id, or None if it is gone. A failure to read is raised: it never looks like "gone".
    create   makes it and returns the moment the id is known, so that the id can be saved before anything
             waits. Doing it twice is the same as once: it looks before it sends, and its keys survive a
             crash without any stored state.
    update   applies the named changes in place and returns the state afterwards.
    delete   removes it; gone already = done.

What only some resources can do (find by a natural key, price, adopt, wait, …) is in ``powers``. Not mentioned
= not managed; not observable = not compared. Resources turn typed values into API calls and know nothing of
previews, check mode or frontends.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import core_schema

from pulumi_hosting.api.secrets import Secret, clean_text
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.call_errors import HostingError, ResourceError
from pulumi_hosting.resources.api_fields import describe, parts, paths
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import duration

T = TypeVar("T")

# --- traits: a field's facts stand on the field ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trait:
    """Facts about an input.

    - ``replaces``: a change needs a new object.
    - ``when_creating``: it matters at creation only; a later change does nothing and says so.
    - ``write_only``: the API never shows it, so it is compared with what was last sent, if that is known.
    - ``unordered``: a set; order is no difference.
    - ``rebuilds``: what a change does is for the user to say (``on_change``).
    - ``trigger``: no property of the object: any other value than before asks for an action, the first one
      too.
    - ``policy``: how to act, nothing to compare.
    - ``names``: the input whose value this text names, such as ``tariff_id``: give one of the two. The name
      is resolved once, when the object is made, so it is nothing to compare either.
    - ``preferred``: one value or several in order of preference (:data:`OneOrSeveral`). One of them is taken,
      and each of them is as declared, in any order.
    - ``normal``: two texts are the same if this makes them equal.
    - ``decides``: what cannot be asked of the account before its value is known: ``order``, whether anything
      is ordered at all (what is to be taken over, or transferred, is neither in stock nor free); ``price``,
      at what price.
    - ``adopts``: it names an object of the account that is taken over, so nothing is made and nothing bought.
    - ``waits``: what is waited for. The account does not show it, so only a state tells that it came.
    - ``sendable``: what a value must pass to be sent. The account may show others, which its control panel
      allows; declared as they are, they are not sent.
    """

    replaces: bool = False
    when_creating: bool = False
    write_only: bool = False
    unordered: bool = False
    rebuilds: bool = False
    trigger: bool = False
    policy: bool = False
    names: str | None = None
    preferred: bool = False
    normal: Callable[[str], str] | None = None
    decides: Literal["order", "price"] | None = None
    adopts: bool = False
    waits: bool = False
    sendable: Callable[[str], object] | None = None


REPLACES = Trait(replaces=True)
REPLACES_AND_PRICES = Trait(replaces=True, decides="price")
PREFERRED = Trait(replaces=True, decides="price", preferred=True)
WHEN_CREATING = Trait(when_creating=True)
PRICES = Trait(when_creating=True, decides="price")
ADOPTS = Trait(when_creating=True, decides="order", adopts=True)
TRANSFERS = Trait(when_creating=True, decides="order")
POLICY = Trait(policy=True)
OnChange = Literal["update", "replace", "refuse", "keep"]
"""What a changed input does: update in place, replace the object, fail, or nothing but a remark (what is
installed stays).
"""


def _id_text(value: object) -> object:
    # Ids are 64-bit; Pulumi's numbers are floats, so an id travels as text and a small number is accepted for
    # convenience.
    if isinstance(value, bool):
        raise ValueError("must be a positive integer")
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    number = id_number(value)
    if number is None:
        raise ValueError("must be a positive integer")
    return str(number)


@dataclass(frozen=True, slots=True)
class _WholeNumber:
    """A whole number of 64 bits, ``least`` or more. Pulumi's numbers are floats, and templates write digits:
    both are taken too.

    Written as pydantic's own schemas: a number is checked without a call of Python code.
    """

    least: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        whole_float = core_schema.float_schema(strict=True, multiple_of=1, gt=-(2**53), lt=2**53)
        digits = core_schema.str_schema(strict=True, pattern="^[0-9]{1,19}$")
        number = core_schema.union_schema(
            [
                core_schema.int_schema(strict=True),
                core_schema.no_info_after_validator_function(int, whole_float),
                core_schema.no_info_after_validator_function(int, digits),
            ],
            mode="left_to_right",
            custom_error_type="whole_number",
            custom_error_message="must be a whole number",
        )
        return core_schema.chain_schema([number, core_schema.int_schema(ge=self.least, le=2**63 - 1)])


@dataclass(frozen=True, slots=True)
class OneOf:
    """A validator of numbers: one of those ``allowed``, and no other. Editors offer them."""

    allowed: tuple[int, ...]

    def __call__(self, value: int) -> int:
        if value not in self.allowed:
            raise ValueError(f"must be one of {', '.join(map(str, self.allowed))}")
        return value


ALWAYS = "always there"
"""Marks a field of a state that has a value whenever the object is there. It may be empty only while an order
is under way, and no program sees the outputs of such an object.
"""


def _length_of_time(text: str) -> str:
    duration(text)
    return text


def check_kept_paid(keep_paid: str | None, period: timedelta, period_named: str) -> None:
    """Raise ``ValueError`` if it is not shorter than one paid ``period``: the next renewal would be due at
    once. Or if it is nothing: then nothing would be renewed in time."""
    if keep_paid is None:
        return
    if not duration(keep_paid):
        raise ValueError(
            f"keep_paid: {keep_paid} renews nothing in time. Next: give at least 1h, or leave it out"
        )
    if duration(keep_paid) >= period:
        raise ValueError(
            f"keep_paid: {keep_paid} is not shorter than one paid period, {period_named}. Next: give less"
        )


def several(value: T | list[T] | None) -> list[T]:
    """The values of an input that takes one or several, in order of preference; none if it was not given.

    >>> several("VDS-2"), several(["VDS-2", "VDS-3"]), several(None)
    (['VDS-2'], ['VDS-2', 'VDS-3'], [])
    """
    return value if isinstance(value, list) else [] if value is None else [value]


def _distinct(values: list[T]) -> T | list[T]:
    if not values:
        raise ValueError("is empty: name at least one")
    known = [value.strip().casefold() if isinstance(value, str) else value for value in values]
    for place, value in enumerate(known):
        if (first := known.index(value)) < place:
            raise ValueError(f"entry {place + 1} repeats entry {first + 1}: name each once")
    return values if len(values) > 1 else values[0]


OneOrSeveral = Annotated[
    Annotated[T, Tag("one")] | Annotated[list[T], AfterValidator(_distinct), Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, list) else "one"),
]
"""A value, or a list of different ones in order of preference. A list of one is that one."""
LengthOfTime = Annotated[str, AfterValidator(_length_of_time)]
IdText = Annotated[str, BeforeValidator(_id_text)]
Count = Annotated[int, _WholeNumber(0)]
WholeNumber = Annotated[int, _WholeNumber(1)]


class _Fields(BaseModel):
    @classmethod
    @cache
    def secret_fields(cls) -> frozenset[str]:
        """Fields whose values are never shown."""
        return frozenset(name for name, info in cls.model_fields.items() if mentions_secret(info.annotation))


class Inputs(_Fields):
    """What a user declares. Closed: an unknown field is refused with its name. Only fields that were
    given are managed.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True
    )
    change: ClassVar[type[BaseModel] | None] = None
    """The body of the API's operation that changes the object: the inputs that it has are the settings."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if cls.change is not None:
            describe(cls, {name: name for name in cls.settings()}, cls.change)

    @classmethod
    @cache
    def settings(cls) -> frozenset[str]:
        """The inputs that one request changes in place."""
        return frozenset(cls.change.model_fields if cls.change else ()) & frozenset(cls.model_fields)

    @classmethod
    @cache
    def clears(cls) -> Mapping[str, str]:
        """The settings that may be taken back, and the value that does it."""
        texts = {name for name in cls.settings() if type(None) in parts(cls.model_fields[name].annotation)}
        return {name: "" for name in sorted(texts) if bool not in parts(cls.model_fields[name].annotation)}

    @classmethod
    @cache
    def trait(cls, name: str) -> Trait:
        return next((item for item in cls.model_fields[name].metadata if isinstance(item, Trait)), Trait())

    @classmethod
    @cache
    def deciding(cls, what: Literal["order", "price"]) -> frozenset[str]:
        """The fields that decide whether anything is ordered, or at what price."""
        return frozenset(name for name in cls.model_fields if cls.trait(name).decides == what)

    @classmethod
    def adopted_by(cls, given: Mapping[str, Any]) -> str | None:
        """The ``given`` field that names an object to take over; None if an object is made."""
        adopting = (name for name in cls.model_fields if cls.trait(name).adopts)
        return next((name for name in adopting if given.get(name) is not None), None)

    @classmethod
    def is_open(cls, name: str, value: object) -> bool:
        """Whether the input says several values, one of which is taken."""
        return isinstance(value, list) and name in cls.model_fields and cls.trait(name).preferred

    @classmethod
    @cache
    def named_by(cls) -> Mapping[str, str]:
        """Fields that may be given by a name: field → the field that holds the name."""
        return {found: name for name in cls.model_fields if (found := cls.trait(name).names)}

    @classmethod
    def resolved_fields(cls, given: Collection[str]) -> frozenset[str]:
        """The names among the ``given`` fields, and the fields whose values they name: what was resolved once
        and stays as it was recorded.
        """
        return frozenset(
            part for field, name in cls.named_by().items() if name in given for part in (field, name)
        )

    def given(self, among: Collection[str] | None = None) -> dict[str, Any]:
        """The fields that were given (``among`` these), in plain values (secrets revealed), in one normal
        form.
        """
        names = self.model_fields_set if among is None else self.model_fields_set.intersection(among)
        return {name: plain(getattr(self, name)) for name in type(self).model_fields if name in names}


class Record(_Fields):
    """Facts for a frontend. Plain values: money and time as text, ids as text; secrets as such."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)

    def values(self) -> dict[str, Any]:
        """Every field in plain values, secrets revealed: for a state that encrypts them."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            name: plain(value) if isinstance(value, BaseModel | Secret) else value
            for name, value in fields.items()
        }

    def shown(self) -> dict[str, Any]:
        """Every field that may be shown: without secrets."""
        hidden = self.secret_fields()
        return {name: value for name, value in self.values().items() if name not in hidden}


class State(Record):
    """What exists, as the API shows it, plus what was sent and cannot be read back."""

    api: ClassVar[type[BaseModel] | None] = None
    """The API's object: fields that are marked with ``At`` hold what it shows."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if cls.api is not None:
            describe(cls, paths(cls), cls.api)

    @classmethod
    @cache
    def paths(cls) -> Mapping[str, str]:
        """The fields that the API shows, and where in its object; without ``api`` all, under their names."""
        return {name: name for name in cls.model_fields} if cls.api is None else paths(cls)

    id: str = Field(description="Id of the object.")
    mode: Annotated[str | None, ALWAYS] = Field(
        default=None, description="live, or test: made with a test key, so only simulated."
    )

    @classmethod
    def partial(cls, values: Mapping[str, Any]) -> Self:
        """A state from what is known: recorded by another version, or little more than the id. What is
        missing is empty.
        """
        empty = {name: "" for name, info in cls.model_fields.items() if info.is_required()}
        return cls.model_validate({**empty, **values})


def plain(value: Any) -> Any:
    """A value as an engine's state holds it: secrets revealed, nested models as mappings without what is
    absent.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    return value.reveal() if isinstance(value, Secret) else value


def mentions_secret(annotation: Any) -> bool:
    return annotation is Secret or any(mentions_secret(part) for part in getattr(annotation, "__args__", ()))


# --- the interface -----------------------------------------------------------------------------------------

Reasons = dict[str, str]
"""Field → why its value is refused."""
I = TypeVar("I", bound=Inputs)  # noqa: E741 — the pair reads as Inputs and State
S = TypeVar("S", bound=State)


class Resource(ABC, Generic[I, S]):
    """One kind of object that a user can declare.

    ``Inputs`` and ``State`` are the two classes in its brackets.
    """

    kind: ClassVar[str]
    """Its name in Python's spelling: ``ssh_key``."""
    title: ClassVar[str]
    """Its name in a sentence: ``SSH key``."""
    Inputs: type[I]
    State: type[S]
    scopes: ClassVar[Mapping[str, tuple[str, ...]]]
    """Scopes of the API key that ``read``, ``create``, ``update`` and ``delete`` need."""
    replacement: ClassVar[Literal["ordered", "free", "once"]] = "ordered"
    """What making another one in its place means:

    - ``ordered``: it costs, so a frontend without a preview does not do it automatically. The new one comes
      first;
    - ``free``: it costs and loses nothing. The natural key is unique, so the old one goes first;
    - ``once``: as ``ordered``, and only under another name: the service sells each name once and deletes
      none.
    """
    control_path: ClassVar[str] = ""
    """Path of one object in the emulator's control interface, ``{}`` for each part of its id; default:
    ``/<kind>s/{}``.
    """
    control_removal: ClassVar[Mapping[str, Any] | None] = None
    """The PATCH that removes it there; None: DELETE."""
    api_name: ClassVar[str] = ""
    """Its name in the ids of operations, if that is not its ``kind``."""
    parent: ClassVar[str | None] = None
    """Kind of the object that it is a part of: it goes with that one, and its id begins with that one's."""
    early_deletion: ClassVar[str] = ""
    """What a person should know if it may be deleted before its ``parent``."""
    default_name: ClassVar[bool] = False
    """If no ``name`` is given, the declaration's own name is meant."""

    id_form: ClassVar[str] = "a positive integer"
    """What an id of it is, in words."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in vars(cls).get("__orig_bases__", ()):
            if get_origin(base) is Resource:
                cls.Inputs, cls.State = get_args(base)

    def is_id(self, id: str) -> bool:
        """Whether an object of the kind, a simulated one or an order of one may have this id."""
        return id_number(id) is not None

    def must_be_id(self, id: str, next_step: str = "correct the id") -> None:
        """Raise ``ResourceError`` if it is none. Asked before an id that a person or a state gives is
        used: the methods below take ids for what ``is_id`` says."""
        if not self.is_id(id):
            raise ResourceError(
                f"{self.title}: {clean_text(id, 100)!r} is not an id: an id is {self.id_form}; nothing was "
                f"done. Next: {next_step}"
            )

    def called(self, values: Mapping[str, Any]) -> str:
        """What a message calls the declared object: ``server 'web'``."""
        name = values.get("name")
        return f"{self.title} {clean_text(name, 100)!r}" if isinstance(name, str) and name else self.title

    def spared_scopes(self, request: Request, desired: Mapping[str, Any]) -> frozenset[str]:
        """Scopes of ``scopes`` without which ``create`` makes what is ``desired`` all the same, with a
        warning."""
        return frozenset()

    @abstractmethod
    def read(self, request: Request, id: str, last: S | None = None) -> S | None:
        """The object by id, or None if it is gone. ``last``: what was known, for what the API never shows."""

    @abstractmethod
    def create(self, request: Request, inputs: I) -> S:
        """Make it, or find what an interrupted run of the same declaration made. The id may be
        provisional (``Provisioned``).
        """

    @abstractmethod
    def update(self, request: Request, state: S, inputs: I, fields: frozenset[str]) -> S:
        """Apply ``fields`` of ``inputs`` in place."""

    @abstractmethod
    def delete(self, request: Request, state: S) -> None:
        """Remove it; gone already = done."""

    def after_failed_deletion(self, request: Request, id: str, error: HostingError) -> str | None:
        """What a person should know when a deletion was refused or failed with ``error``: of what an engine
        forgot before it asked for it. Raises nothing.
        """
        return None


AnyResource = Resource[Any, Any]
"""A resource of any kind: who has it knows its inputs and state by their fields alone."""
