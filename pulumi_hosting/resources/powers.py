"""Optional powers of a resource. A resource derives from those it has; the planner asks
``isinstance(resource, Priced)``.

    Findable      natural_key, find, all                        an object is found by what is declared, and listed
    Renamable     refuse_renamed                                another tool may have given it another natural key
    Adoptable     takeover                                      ``create`` may take over what exists
    Priced        cost, may_be_paid                             making one is paid from the balance
    Refunded      refund                                        deleting one credits the balance
    Validated     validate                                      the account knows what is wrong with the inputs
    Named         resolve                                       an input may be given by the name of its value
    Settled       settle                                        what creation cannot carry is set afterwards
    Provisioned   settle, wait, is_provisional                  an order comes first, the object later
    Sandboxed     sandbox, is_simulated, has_lapsed             what a test key makes, and how it is recognised
    Rebuildable   on_change, is_same, consequence               the user says what a change of a field does
    Registered    why_unchangeable, is_released                 held by a registry: not changeable at times, never deleted
    Remarked      remarks, is_gone, prepaid                     the account shows facts that a user should know
    Predicted     adjust_prediction                             a change has effects on other fields of the state
    Repeatable    doubles                                       a late request may make a second object

Every method that takes a ``Request`` only reads, but ``settle``.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Generic, Literal

from pulumi_hosting.resources.base import AnyResource, I, OnChange, Reasons, Resource, S, State
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.prepaid import Prepaid
from pulumi_hosting.session.request import Request


class Findable(ABC, Generic[I, S]):
    natural_key: ClassVar[tuple[str, ...]]
    """The inputs that ``find`` goes by."""

    @abstractmethod
    def find(self, request: Request, inputs: I) -> S | None:
        """The object that the natural key of ``inputs`` names, or None. Raises ``AmbiguousMatch`` for
        several.
        """

    @abstractmethod
    def all(self, request: Request, **filters: Any) -> Iterable[S]:
        """Every object of the kind, or those that match; each resource says by which filters."""


class Renamable(ABC, Generic[I]):
    @abstractmethod
    def refuse_renamed(self, request: Request, inputs: I, undone: Literal["ordered", "deleted"]) -> None:
        """Raise ``ResourceConflict`` if the object that the natural key of ``inputs`` named is there under
        another one. ``undone``: what is not done then. Asked by frontends that know objects by that key
        alone, once ``find`` has found none."""


class Adoptable(ABC, Generic[I]):
    @abstractmethod
    def takeover(self, request: Request, inputs: I) -> Takeover | None:
        """What ``create`` would take over instead of making one. Raises what ``create`` would raise of it.

        In a preview, inputs that are not known yet are absent from ``inputs``; those of the natural key and
        ``adopt_id`` are known.
        """


class Priced(ABC):
    @abstractmethod
    def cost(self, request: Request, desired: Mapping[str, Any]) -> Cost | None:
        """What making it charges now; None if nothing is paid or too little is known."""

    def may_be_paid(self, request: Request, desired: Mapping[str, Any]) -> bool:
        """Whether an order that is under way may be that of an interrupted run, which is waited for then."""
        return False


class Refunded(ABC, Generic[S]):
    @abstractmethod
    def refund(self, request: Request, state: S) -> Decimal | None:
        """What deleting it credits now, in the account's currency; None if that cannot be known."""


class Validated(ABC):
    @abstractmethod
    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> Reasons:
        """Field → reason, for what only the account can tell (catalog, stock). Raises what a read raises.

        ``desired``: the declared values that are known; ``fields``: the names of those that are new.
        """


class Named(ABC):
    @abstractmethod
    def resolve(self, request: Request, field: str, name: str) -> Any:
        """The value of ``field`` that ``name`` names now. Raises ``ValueError`` with the reason if it
        names none or several, and what a read raises.
        """

    def likely(self, request: Request, field: str, values: list[int]) -> Mapping[str, object]:
        """What a new object would have as of now, of several ``values`` of ``field`` in order of preference:
        the value and its name. Raises what a read raises.
        """
        return {field: values[0]}


class Settled(ABC, Generic[I, S]):
    @abstractmethod
    def settle(self, request: Request, state: S, inputs: I) -> S:
        """Wait until it is usable, and set what creation cannot carry. May exchange a provisional id for
        the final one.
        """


class Provisioned(Settled[I, S]):
    @abstractmethod
    def wait(self, request: Request, state: S) -> S:
        """Wait for what an order brings: the part of ``settle`` that reads. Raises ``WaitTimeout``."""

    @abstractmethod
    def is_provisional(self, state: S) -> bool:
        """Whether the id stands for an order that is still to become the object."""


class Sandboxed(ABC, Generic[S]):
    sandbox: ClassVar[Literal["listed", "recorded", "refused"]] = "recorded"
    """What a test key can do with the kind:

    - ``listed``: make one, and read it back;
    - ``recorded``: make one; it cannot be read back, so it is kept as it was recorded;
    - ``refused``: nothing. The service refuses test keys, and what it would do is simulated here.
    """

    @abstractmethod
    def is_simulated(self, id: str) -> bool:
        """Whether the id alone shows that the object is only simulated."""

    def has_lapsed(self, state: S, now: datetime) -> bool:
        """Whether a simulated object is gone by its age alone. ``now``: the service's time."""
        return False


class Rebuildable(ABC, Generic[S]):
    @abstractmethod
    def on_change(self, field: str, desired: Mapping[str, Any]) -> OnChange | None:
        """What a change of ``field`` means among the ``desired`` values; None if the field's trait
        says it.
        """

    @abstractmethod
    def is_same(self, request: Request, field: str, olds: Mapping[str, Any], after: Any) -> bool:
        """Whether ``field``, whose declared value ``after`` reads differently from the state's
        (``olds``), means the same.
        """

    @abstractmethod
    def consequence(
        self, request: Request | None, state: S, fields: frozenset[str], replaces: Collection[str]
    ) -> str | None:
        """What a user must know before ``fields`` are changed in place, or before a change of ``replaces``
        replaces the object, with what its deletion would credit. Without a ``request`` nothing is asked.
        """


class Registered(ABC, Generic[S]):
    @abstractmethod
    def why_unchangeable(self, state: S) -> str | None:
        """Why nothing of the object can be changed yet, if that passes automatically; None if it
        can.
        """

    @abstractmethod
    def is_released(self, state: S) -> bool:
        """Whether nothing is left for ``delete`` to do though the object is still there: it ends when its
        time is over.
        """


class Remarked(ABC, Generic[S]):
    @abstractmethod
    def remarks(self, request: Request, state: S) -> list[str]:
        """What a user should know of a recorded object: it is gone, or about to be switched off. Empty
        if the account cannot be read.
        """

    def is_gone(self, request: Request, state: S) -> bool:
        """Whether a remark says that the object is not there any more, so that nothing is to be said of its
        change."""
        return False

    @abstractmethod
    def prepaid(self, request: Request, state: S) -> Prepaid | None:
        """Until when a recorded object is paid; None where it is gone, or that is not known."""


class Predicted(ABC, Generic[S]):
    @abstractmethod
    def adjust_prediction(self, predicted: dict[str, Any], state: S | None) -> dict[str, Any]:
        """The ``predicted`` fields of the state without those that the declared change makes uncertain, or
        with what else it changes.

        ``state``: the object before the change; None if it is made.
        """


class Repeatable(ABC, Generic[S]):
    """Creation has no idempotency key and no unique name: a request of an interrupted run that is processed
    late makes a second object."""

    @abstractmethod
    def doubles(self, request: Request, state: S) -> list[str]:
        """The ids of second objects of the same declaration that ``update`` deletes, whatever fields it is
        given. Only what is certainly this declaration's. Raises what a read raises."""


# --- what holds of any resource, also of one that lacks the power ------------------------------------------


def natural_key(resource: AnyResource) -> tuple[str, ...]:
    """The inputs that name an object before it has an id."""
    return resource.natural_key if isinstance(resource, Findable) else ()


def on_change(resource: AnyResource, field: str, desired: Mapping[str, Any]) -> OnChange:
    """What a change of ``field`` means among the ``desired`` values."""
    chosen = resource.on_change(field, desired) if isinstance(resource, Rebuildable) else None
    return chosen or ("replace" if resource.Inputs.trait(field).replaces else "update")


def is_provisional(resource: AnyResource, state: State) -> bool:
    """Whether the id stands for an order that is still to become the object."""
    return isinstance(resource, Provisioned) and resource.is_provisional(state)


def is_simulated(resource: AnyResource, id: str) -> bool:
    """Whether the id alone shows that the object is only simulated."""
    return isinstance(resource, Sandboxed) and resource.is_simulated(id)


def sandbox_of(resource: AnyResource) -> str:
    """What a test key can do with the kind: ``listed``, ``recorded`` or ``refused`` (see ``Sandboxed``)."""
    return resource.sandbox if isinstance(resource, Sandboxed) else "recorded"


def recorded_mode(resource: AnyResource, state: State) -> str | None:
    """``live`` or ``test``, by what was recorded; None if neither the record nor the id tells."""
    return state.mode or ("test" if is_simulated(resource, state.id) else None)


def mode_of(resource: AnyResource, state: State) -> str:
    """``live``, or ``test`` for what is only simulated: by the record, else by the id."""
    return recorded_mode(resource, state) or "live"


def listed(request: Request, resource: Resource[Any, S], **filters: Any) -> Iterable[S]:
    """Every object of the kind on the account, or those that match. Raises ``ResourceError`` if the
    API has no list of them.
    """
    if not isinstance(resource, Findable):
        raise ResourceError(f"a {resource.title} cannot be listed")
    found: Iterable[S] = resource.all(request, **filters)
    return found
