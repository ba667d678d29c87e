"""An object on the account that is taken over, and how a preview announces it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pulumi_hosting.resources.base import State
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import age


@dataclass(frozen=True, slots=True)
class Takeover:
    """An object on the account that ``create`` will take over instead of making one. It costs and books
    nothing.

    - ``state``: the object as it is now.
    - ``reason``: why it is taken for ours, as a clause: "it carries this resource's tag". ``unsure``: it has
      the name, and only the creation finds out whether it is ours, or stops.
    - ``ordered_at``: when it was ordered, by the service's time; None if that is not shown.
    - ``charged``, ``currency``: what its order cost; None if that is not known without asking more.
    - ``price_monthly``: what it costs per month, shown if ``charged`` is not known.
    - ``title``: what kind of thing it is, in words.
    - ``invoice_id``: of its order, if the state does not have it.
    """

    state: State
    reason: str
    ordered_at: datetime | None = None
    charged: Decimal | None = None
    currency: str | None = None
    price_monthly: Decimal | None = None
    title: str = "object"
    invoice_id: int | None = None
    unsure: bool = False

    def announce(self, request: Request) -> None:
        """Say it once in a run: what the plan has announced, its creation does not repeat, unless only the
        creation knows it."""
        if self.unsure and request.announce:
            request.announce(self.announcement(request.service_now()))
        elif request.session.announces(request.kind, request.identity, self.state.id):
            request.tell(self.announcement(request.service_now()))

    def announcement(self, now: datetime) -> str:
        """One line for a preview: ``takes over server 20001, ordered 2 h ago, 5.00 EUR (it carries this
        resource's tag)``.

        ``now``: the service's time.
        """
        parts = [f"{self.title} {self.state.id}"]
        if self.ordered_at is not None:
            parts.append(f"ordered {age(now - self.ordered_at)} ago")
        if self.charged is not None:
            parts.append(f"{self.charged} {self.currency or ''}".rstrip())
        elif self.price_monthly is not None:
            parts.append(f"{self.price_monthly} {self.currency or ''}".rstrip() + " a month")
        if (invoice := self.invoice_id or getattr(self.state, "invoice_id", None)) is not None:
            parts.append(f"invoice {invoice}")
        if self.unsure:
            name = getattr(self.state, "name", self.title)
            return (
                f"{name} is already on the account ({', '.join(parts)}). If this stack bought it, it is "
                f"adopted; if not, the run stops. Next: set adopt_id={self.state.id}"
            )
        return f"takes over {', '.join(parts)} ({self.reason})"
