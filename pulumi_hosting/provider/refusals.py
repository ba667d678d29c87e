"""Why the provider does not touch an object, or leaves it where it is, and what to do next."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pulumi_hosting.client.exceptions import CallError, HostingError
from pulumi_hosting.planning.plan import cannot_answer
from pulumi_hosting.provider import names
from pulumi_hosting.provider.failures import WORDS
from pulumi_hosting.provider.names import PropertyValues, class_of
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.resources.base import AnyResource, Inputs, State
from pulumi_hosting.resources.powers import Findable, recorded_mode
from pulumi_hosting.session.errors import (
    AmbiguousMatch,
    NotOurs,
    ResourceConflict,
    ResourceError,
    StillOrdered,
    WaitTimeout,
)
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import name_in


class NotReplaced(ResourceError):
    """The creation of a replacement took the object itself over, so that nothing was replaced or deleted."""


def name_of(resource: AnyResource, props: PropertyValues, urn: str | None = None) -> str:
    """The name of the resource in the program."""
    return name_in(label_of(props, urn) or resource.title)


def label_of(props: PropertyValues, urn: str | None = None) -> str:
    """What tells the declaration from the others of the program: its URN, else the identity that it declares.
    The recorded identity is that of before a rename."""
    return str(urn or props.get(names.DECLARED) or props.get(names.IDENTITY) or "")


def must_be_id(resource: AnyResource, id: str, olds: PropertyValues, urn: str | None) -> None:
    """Raise ``ResourceError`` for a damaged id. Without recorded ``olds`` it is that of an import."""
    if names.MANAGED not in olds:
        return resource.must_be_id(id)
    try:
        resource.must_be_id(
            id,
            "export the state (pulumi stack export --file s.json), correct the id, and import the state "
            "(pulumi stack import --file s.json)",
        )
    except ResourceError as error:
        raise ResourceError(f"{name_of(resource, olds, urn)}: {error}") from None


def account_of(session: ProviderSession) -> str:
    """The account of the key; asked once per process."""
    return str(session.client.key_owner.get().account_id)


def must_be_its_account(
    session: ProviderSession, resource: AnyResource, id: str, olds: PropertyValues
) -> None:
    """Raise ``ResourceError`` if the key is another account's than the object is on: what is not found
    there may well live.
    """
    if olds.get(names.ACCOUNT) not in (None, own := account_of(session)):
        raise ResourceError(
            f"{resource.title} {id} is on account {olds[names.ACCOUNT]}, and this is a key of account {own}; "
            "nothing was done. Next: use a key of its account"
        )


def must_be_of_this_key(
    session: ProviderSession, resource: AnyResource, state: State, olds: PropertyValues
) -> HostingError | None:
    """Raise ``ResourceError`` if the key cannot be the one that the object was made with: it is simulated,
    or on another account. Raises ``ApiError`` if the service refuses the key. Why the account cannot be
    asked, if so.
    """
    if recorded_mode(resource, state) == "test" and not session.client.is_test_key:
        raise ResourceError(
            f"{resource.title} {state.id} was made with a test key: it is only simulated, and this is a "
            "live key; nothing was done. Next: pulumi up, then pulumi destroy, both with the test key; then "
            "pulumi up with the live key"
        )
    if (unreachable := session.unreachable()) is None:
        try:
            must_be_its_account(session, resource, state.id, olds)
        except CallError as error:
            if not cannot_answer(error):
                raise
            unreachable = error
    return unreachable


def of_that_name(
    session: ProviderSession, resource: AnyResource, request: Request, wanted: Inputs
) -> ResourceConflict | None:
    """The object that has a name which cannot be sent already, if the account can be asked."""
    if not isinstance(resource, Findable):
        return None
    with suppress(HostingError):
        try:
            found = session.unreachable() or resource.find(request, wanted)
        except AmbiguousMatch as error:
            return ResourceConflict(str(error), id="")
        if isinstance(found, State):
            return ResourceConflict(
                f"{resource.title} {found.id} has this name, which an order cannot carry. Next: set "
                f"adopt_id to {found.id} to take it over, or import it",
                id=found.id,
            )
    return None


def not_replaced(
    resource: AnyResource, id: str, olds: PropertyValues, urn: str | None, *, adopted: str | None
) -> NotReplaced:
    """The creation of the replacement took the object itself over. ``adopted``: the input that names it."""
    tidy = "pulumi up, which removes the older of the two entries from the state"
    if adopted or resource.replacement == "once":
        why = f"{adopted} names it" if adopted else "the API deletes none and sells a name once"
        return NotReplaced(
            f"{resource.title} {id} was not replaced: {why}, so the creation took the same one over; nothing "
            f"was changed. Next: {tidy} and keeps the {resource.title}"
        )
    # without a URN: a pattern that fits it alone
    target = urn or f"**{names.NAME}:{class_of(resource.kind)}::{name_of(resource, olds)}"
    return NotReplaced(
        f"{resource.title} {id} was not replaced: without a refresh the creation found it and took it over; "
        f"nothing was deleted. Next: {tidy} and keeps the {resource.title}; or, to replace it, pulumi up "
        f"--refresh --target-replace '{target}' --target-dependents"
    )


NotTouched = NotOurs | StillOrdered | WaitTimeout
"""Why an object is left as it is."""


def advised(
    resource: AnyResource, error: NotTouched, olds: PropertyValues, urn: str | None, chosen: str = ""
) -> ResourceError:
    """With its next step: how to leave the object alone and how to take it over, or back; how to let the
    declaration go, though what was paid may still come. ``chosen``: the id of the entry, if a newer one has
    the same URN: Pulumi then asks for it, and only in a terminal.
    """
    forget = _forget(resource, olds, urn) + (f" in a terminal, choosing {chosen}," if chosen else "")
    if not isinstance(error, NotOurs):
        text = f"{error}; or {forget}, which leaves it to the account"
        return WaitTimeout(text, id=error.id) if isinstance(error, WaitTimeout) else ResourceError(text)
    if error.reason == "elsewhere":
        step = (
            "pulumi up --refresh with a program that declares this resource, which takes "
            f"{resource.title} {error.id} over or names the setting that does; then it can be destroyed. Or "
            f"{forget}, which leaves it as it is"
        )
    elif "adopt_id" in resource.Inputs.model_fields:
        step = f"{forget} leaves it as it is; to take it over, then set adopt_id={error.id} and run pulumi up"
    else:
        step = f"{forget} leaves it as it is; then pulumi up makes what is declared"
    return NotOurs(error.id, error.tag, error.reason, f"{error}. Next: {step}")


@contextmanager
def advising(resource: AnyResource, olds: PropertyValues, urn: str | None) -> Iterator[None]:
    """Give ``NotOurs`` and ``StillOrdered`` their next step, and a wait that ended a second one."""
    try:
        yield
    except (NotOurs, StillOrdered, WaitTimeout) as error:
        raise advised(resource, error, olds, urn) from None


def _forget(resource: AnyResource, olds: PropertyValues, urn: str | None) -> str:
    """The command that removes an entry from the state, and nothing from the account."""
    parts = label_of(olds).partition(":")[2].split("/")
    if urn is None and len(parts) == 4:
        project = parts[0].rpartition("@")[2]
        urn = f"urn:pulumi:{parts[1]}::{project}::{names.dynamic_token(resource.kind)}::{parts[3]}"
    elif urn is None:
        return WORDS.forget
    return f"pulumi state delete '{urn}'"


def stays(resource: AnyResource, id: str, olds: PropertyValues) -> str:
    """With its price, since it goes on costing that."""
    price = olds.get("priceMonthly")
    amount = f" ({price} {olds.get('currency') or ''}".rstrip() + ")" if price else ""
    return f"{resource.title} {id}{amount} stays: another resource of this stack has it"
