"""Inputs and state of a server, and what of the API's objects they are made of."""

from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import by_id, servers
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import NAME_LENGTH, check_server_name, id_number, passes
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.requests import check_body
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag, split_tag, untagged, with_tag
from pulumi_hosting.resources import base
from pulumi_hosting.resources.api_fields import At, shown
from pulumi_hosting.resources.drift_fields import Drift, renamed
from pulumi_hosting.session.text import as_text

_OPERATIONS = by_id(servers.OPERATIONS)
_LONGEST_TAG = ownership_tag("", 10**9 - 1)
REBUILDS = base.Trait(rebuilds=True)
PanelName = Annotated[m.Line, Field(min_length=1, max_length=NAME_LENGTH)]
"""Any name that an existing server may have."""
MOST_HOURS = 720
"""That one order or renewal pays."""


def sorted_ids(ids: list[str]) -> list[str]:
    return sorted(set(ids), key=int)


class ServerInputs(base.Inputs):
    change = m.ServerUpdate
    tariff_id: Annotated[base.OneOrSeveral[base.WholeNumber], base.PREFERRED] = Field(
        description="Id of the tariff, from the catalog, or several in order of preference, as in tariff. A "
        "change replaces the server, unless its tariff is among them."
    )
    os: Annotated[
        m.OsSlug, REBUILDS, Drift(lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12")
    ] = Field(description="Image slug, from the catalog. A change replaces it, or as `rebuild` decides.")
    name: Annotated[PanelName, base.Trait(sendable=check_server_name), Drift(renamed)]
    months: Annotated[Annotated[base.WholeNumber, AfterValidator(base.OneOf(m.MONTHS))], base.PRICES] = Field(
        default=1,
        description="Months paid when ordering: 1, 3, 6 or 12. Not together with hours. Used at "
        "creation only.",
    )
    hours: Annotated[Annotated[base.WholeNumber, Field(le=MOST_HOURS)] | None, base.PRICES] = m.optional(
        "Hours paid when ordering an hourly server: 1 to 720. Used at creation only."
    )
    billing_cycle: Annotated[Literal["monthly", "hourly"] | None, base.REPLACES_AND_PRICES] = m.optional(
        "monthly or hourly. A change replaces the server."
    )
    ssh_key_ids: Annotated[
        Annotated[list[base.IdText], AfterValidator(sorted_ids)] | None,
        base.Trait(rebuilds=True, write_only=True, unordered=True),
    ] = m.optional(
        "Ids of SSH keys to install; order does not matter, and another id of the same key is no change. "
        "A change has an effect only with rebuild set to replace or reinstall."
    )
    password: Annotated[m.RootPassword | None, base.Trait(rebuilds=True, write_only=True)] = m.optional(
        "Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter and a digit. "
        "Generated and shown once if absent. A change has an effect only with rebuild set to replace "
        "or reinstall."
    )
    rebuild: Annotated[Literal["replace", "reinstall", "forbid"] | None, base.POLICY] = m.optional(
        "What a change of os, ssh_key_ids or password does. replace: a new server is ordered and the old "
        "one deleted; reinstall: the same server, address and paid period, BUT ITS DISK IS ERASED; "
        "forbid: the change is refused. By default a change of os replaces the server, and changed keys "
        "and passwords wait for the next server: the current one keeps its own."
    )
    promo_code: Annotated[m.PromoCode | None, base.PRICES] = m.optional("Promo code. Used at creation only.")
    custom_fields: Annotated[
        Annotated[dict[m.Line, m.Notes], Field(max_length=30)] | None, base.WHEN_CREATING
    ] = m.optional("Answers to the provider's extra order questions, up to 30. Used at creation only.")
    auto_renew: bool | None = None
    keep_paid: Annotated[base.LengthOfTime | None, base.POLICY] = m.optional(
        "Renew the server, once in a run, if less than this is left of its paid time: days or hours, such "
        "as 7d, less than one paid period. The shortest period that restores it is bought, within the limit "
        "of the run. With auto_renew on and covered by the balance, nothing is bought."
    )
    notes: Annotated[m.Notes, AfterValidator(untagged)] | None = m.optional(
        "Free text shown in the control panel."
    )
    power: Annotated[
        Literal["running", "stopped"] | None,
        Drift(lambda value: "active" if value == "stopped" else "stopped", "status"),
    ] = m.optional("running or stopped. Not managed if absent.")
    ready: Annotated[Literal["ssh"] | None, base.Trait(waits=True)] = m.optional(
        "ssh: wait until the server answers on SSH, as long as for the server itself, and record its host "
        "key as ssh_host_key. It costs nothing, at any time."
    )
    tariff: Annotated[
        base.OneOrSeveral[m.ShortLine] | None,
        base.Trait(policy=True, preferred=True, names="tariff_id", decides="price"),
    ] = m.optional(
        "Name of the tariff, from the catalog, instead of tariff_id, or several in order of preference: if "
        "one is out of stock or cannot be ordered, the next one is ordered. Names are resolved when the "
        "server is ordered; a later change of the catalog, and the order of the names, is no difference."
    )
    adopt_id: Annotated[base.IdText | None, base.ADOPTS] = m.optional(
        "Take over this existing server instead of ordering one. Tariff and image must be the declared ones."
    )
    order_attempt: Annotated[Annotated[base.Count, Field(le=10**6)] | None, base.WHEN_CREATING] = m.optional(
        "Increment to force a new order after the provider refused to create a possible duplicate."
    )

    def model_post_init(self, context: Any) -> None:
        self._check_period()
        if self.ready and self.power == "stopped":
            raise ValueError("ready: a stopped server does not answer. Next: leave ready out")
        self._check_bodies()

    def _check_period(self) -> None:
        given = self.model_fields_set
        if "hours" in given and self.hours is not None:
            if "months" in given:
                raise ValueError("hours: give either months or hours, not both")
            if self.billing_cycle == "monthly":
                raise ValueError(
                    "hours: a monthly server is ordered by months. Next: give months instead of hours"
                )
        if self.billing_cycle == "hourly" and "months" in given:
            raise ValueError(
                "months: an hourly server is ordered by hours. Next: give hours instead of months"
            )
        if self.hours is not None or self.billing_cycle == "hourly":
            base.check_kept_paid(self.keep_paid, timedelta(hours=MOST_HOURS), f"{MOST_HOURS} hours")
        else:
            days = 30 * (self.months or 1)
            base.check_kept_paid(self.keep_paid, timedelta(days=days), f"{days} days")

    def _check_bodies(self) -> None:
        """Build and check every body before anything is paid: the order's, and that of the change that
        follows it.
        """
        if self.tariff_id is None or self.os is None or self.name is None:  # not known yet
            return
        # whether the name is sent is not known yet
        sent = self if passes(check_server_name, self.name) else self.model_copy(update={"name": None})
        for id, make, where in (
            ("create_server", sent.order_body, "custom_fields"),
            ("update_server", sent._longest_change, "notes"),
        ):
            try:
                check_body(_OPERATIONS[id], make)
            except InvalidInput as error:
                field, reason = next(iter(error.fields.items()))
                field = field.split(".")[0] if field.split(".")[0] in type(self).model_fields else where
                raise ValueError(f"{field}: {reason}") from None

    def order_body(self) -> m.ServerCreate:
        """The body of ``POST /servers`` in one canonical form: what was not given is absent, hourly
        orders say so in both fields. Of several tariffs it has the preferred one.
        """
        options = {name: getattr(self, name, None) for name in m.ServerCreate.model_fields}
        if isinstance(self.tariff_id, list):
            options["tariff_id"] = self.tariff_id[0]
        if self.hours is not None or self.billing_cycle == "hourly":
            options |= {"months": None, "hours": self.hours or 1, "billing_cycle": "hourly"}
        options["ssh_key_ids"] = [int(key) for key in self.ssh_key_ids or ()]
        options["custom_fields"] = dict(sorted((self.custom_fields or {}).items()))
        given = {name: value for name, value in options.items() if value not in (None, [], {})}
        return m.ServerCreate.model_validate(given)

    @classmethod
    @cache
    def late(cls) -> frozenset[str]:
        """The settings that an order does not carry: they are set once the server is there."""
        return cls.settings() - m.ServerCreate.model_fields.keys()

    def _longest_change(self) -> m.ServerUpdate:
        """The longest body of the change that follows the order."""
        given = {name: value for name in self.settings() if (value := getattr(self, name)) is not None}
        return m.ServerUpdate(**{**given, "notes": with_tag(self.notes or "", _LONGEST_TAG)})


class ServerState(base.State):
    """What a program uses or a plan compares. docs/outputs.md says which lookup has the rest."""

    api = m.Server
    id: str = Field(description="Id of the server; order:<invoice id> while it is being created.")
    name: Annotated[str | None, base.ALWAYS, At()] = None
    status: Annotated[str, At()] = Field(
        description="active, stopped, suspended, pending_cancel, cancelled or terminated; provisioning "
        "while being created."
    )
    tariff_id: Annotated[int | None, At("tariff.id")] = m.optional(
        "Number of the tariff in the catalog; empty once the tariff is gone."
    )
    tariff: Annotated[str | None, At("tariff.name")] = m.optional("Name of the tariff that bills the server.")
    os: Annotated[str | None, At()] = m.optional("Slug of the installed image, such as debian-12.")
    os_shown: str | None = m.optional("The old image slug, if the API still shows it after a reinstallation.")
    power: str | None = m.optional("running or stopped; empty while the service keeps it suspended.")
    ready: str | None = m.optional("ssh once the server has answered on SSH, where that was waited for.")
    ssh_host_key: str | None = m.optional(
        "Its SSH host key, as in known_hosts without the host: ssh-ed25519 AAAA… Recorded once, with ready, "
        "and again after a reinstallation; empty with a test key or an emulator."
    )
    ip: str | None = m.optional(
        "Primary address: the one that was assigned first; empty while there is none."
    )
    ips: list[str] = Field(default=[], description="Every address of the server, IPv4 and IPv6.")
    notes: Annotated[str | None, At()] = m.optional(
        "Notes shown in the control panel, without the provider's tag."
    )
    auto_renew: Annotated[bool | None, At("billing.auto_renew")] = None
    billing_cycle: Annotated[str | None, At("billing.cycle")] = m.optional(
        "Whether it is paid by the month (monthly) or by the hour (hourly)."
    )
    currency: Annotated[str | None, At("billing.currency")] = None
    next_due_at: Annotated[str | None, At("billing.next_due_at")] = None
    created_at: Annotated[str | None, At()] = None
    invoice_id: str | None = m.optional("Invoice of the order; empty in the sandbox and for adopted servers.")
    charged: str | None = m.optional("What the order cost (decimal, in currency); empty for adopted servers.")
    root_password: Secret | None = m.optional("Root password, if it was shown or declared.")
    # Sent, and never shown by the API: kept as declared.
    ssh_key_ids: list[str] | None = m.optional("Ids of the SSH keys installed, as declared.")
    ssh_key_fingerprints: list[str] | None = m.optional(
        "Fingerprints of the SSH keys installed, in the SHA256 form, if all of them were known."
    )
    password: Secret | None = m.optional("Root password as declared.")
    ownership_tag: str | None = m.optional(
        "Tag behind the notes on the account, as last written: tells whether a later run took the server "
        "over."
    )


POWER = {"active": "running", "stopped": "stopped"}
KEPT = (
    "ready",
    "ssh_host_key",
    "invoice_id",
    "charged",
    "root_password",
    "ssh_key_ids",
    "ssh_key_fingerprints",
    "password",
)


def from_api(
    server: m.Server, last: ServerState | None = None, *, is_test: bool = False, keeps_tag: bool = True
) -> ServerState:
    """What the API shows, and what it does not show as it was ``last``; the ownership tag too, if it
    ``keeps_tag``. ``is_test``: also what was last written to a simulated server: responses need not show it,
    and only this account writes to it.
    """
    notes, tag = split_tag(server.notes)
    values = shown(ServerState, server) | {
        "id": str(server.id),
        "ip": server.ip,
        "ips": sorted(server.ips or ([server.ip] if server.ip else []), key=lambda ip: (":" in ip, ip)),
        "notes": notes,
        "power": POWER.get(server.status),
        "ownership_tag": tag,
    }
    if last is not None:
        values |= {name: getattr(last, name) for name in KEPT}
        if keeps_tag:
            values["ownership_tag"] = last.ownership_tag
        values["currency"] = values["currency"] or last.currency
        if last.os_shown and last.os_shown == values["os"]:
            values |= {"os": last.os, "os_shown": values["os"]}
        if is_test and last.status and is_simulated(values["id"]):
            written = {name: getattr(last, name) for name in (*ServerInputs.settings(), "os", "power")}
            values |= {name: value for name, value in written.items() if value is not None}
            ends = values["next_due_at"], last.next_due_at
            values["next_due_at"] = max(filter(None, ends), default=None)
    return ServerState(**values)


def is_simulated(id: str) -> bool:
    """Whether the id is one of the sandbox's."""
    return (id_number(id) or 0) >= m.SANDBOX_SERVER_IDS


def provisional(order: m.Order, last: ServerState | None = None) -> ServerState:
    known = dict(last) if last else {}
    return ServerState(
        **{
            **known,
            "id": f"{ORDER_PREFIX}{order.invoice_id}",
            "status": "provisioning",
            "name": order.server_name or known.get("name"),
            "invoice_id": str(order.invoice_id),
            "charged": as_text(order.amount) or known.get("charged"),
            "currency": order.currency or known.get("currency"),
        }
    )
