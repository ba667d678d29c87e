"""A delivered event with its object as the model of its kind (API document, "Events")."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from pydantic_core import from_json, to_json

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import InvalidResponse
from pulumi_hosting.client.lenient import from_damaged

M = TypeVar("M", bound=m.Response)


class Ping(m.Response):
    """What ``POST /webhooks/{id}/test`` sends."""

    subscription_id: int | None = m.optional("Number of the subscription that is tested.")
    message: str | None = m.optional("`pong`.")


class DeliveredEvent(m.Event):
    """An event of a delivery. One of ``server``, ``invoice``, ``balance``, ``domain``, ``key`` and ``ping``
    is its object, by the type of the event; the others are ``None``. Of a type that this version does not
    know, all may be: ``object`` has its JSON.

    Reading one raises ``InvalidResponse`` if the object lacks its id, or a sum of money cannot be read.
    """

    @property
    def server(self) -> m.ServerDetail | None:
        """The server of a ``server.…`` event, as it was then."""
        return _typed(self, "server", m.ServerDetail)

    @property
    def invoice(self) -> m.Invoice | None:
        """The invoice of an ``invoice.…`` event, as it was then."""
        return _typed(self, "invoice", m.Invoice)

    @property
    def balance(self) -> m.Balance | None:
        """The balance of a ``balance.low`` event."""
        return _typed(self, "balance", m.Balance)

    @property
    def domain(self) -> m.Domain | None:
        """The domain of a ``domain.…`` event, as it was then."""
        return _typed(self, "domain", m.Domain)

    @property
    def key(self) -> m.ApiKey | None:
        """The API key of a ``key.…`` event, without its text."""
        return _typed(self, "key", m.ApiKey)

    @property
    def ping(self) -> Ping | None:
        """What a test sends."""
        return _typed(self, "ping", Ping)

    @property
    def previous(self) -> dict[str, Any] | None:
        """The fields that changed, with their values before, as the models have them: times are
        ``datetime``, money is ``Decimal``. ``None`` if the event tells of no change.
        """
        before, model = super().previous, _MODELS.get(self._kind)
        found = _read(model, {**self.object, **before}) if before and model else None
        return {name: getattr(found, name, value) for name, value in before.items()} if before else None

    @property
    def _kind(self) -> str:
        return self.type.partition(".")[0]


def _typed(event: DeliveredEvent, kind: str, model: type[M]) -> M | None:
    if event._kind != kind:
        return None
    found = _read(model, event.object)
    if found is None:
        raise InvalidResponse(f"event {event.id}: its {kind} cannot be read", operation=event.type)
    return found


_MODELS: Mapping[str, type[m.Response]] = {
    "server": m.ServerDetail,
    "invoice": m.Invoice,
    "balance": m.Balance,
    "domain": m.Domain,
    "key": m.ApiKey,
    "ping": Ping,
}


def _read(model: type[M], data: Mapping[str, Any]) -> M | None:
    found: Any = from_damaged(model, from_json(to_json(data)))[0]  # its copy: it is changed in place
    return cast(M | None, found)
