"""Inputs and state of a server, and what of the API's objects they are made of."""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import by_id, servers
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.requests import check_body
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag, split_tag, with_tag
from pulumi_hosting.resources import base
from pulumi_hosting.resources.api_fields import At, shown
from pulumi_hosting.resources.base import (
    ADOPTS,
    ALWAYS,
    POLICY,
    PRICES,
    REPLACES_AND_PRICES,
    WHEN_CREATING,
    Count,
    IdText,
    OneOf,
    Trait,
    WholeNumber,
)
from pulumi_hosting.resources.drift_fields import Drift, renamed
from pulumi_hosting.session.text import as_text

_OPERATIONS = by_id(servers.OPERATIONS)
_LONGEST_TAG = ownership_tag("", 10**9 - 1)
REBUILDS = Trait(rebuilds=True)


def sorted_ids(ids: list[str]) -> list[str]:
    return sorted(set(ids), key=int)


def _trimmed(notes: str) -> str:
    if split_tag(notes)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return notes.rstrip()


class ServerInputs(base.Inputs):
    change = m.ServerUpdate
    tariff_id: Annotated[
        WholeNumber,
        Field(description="Id of the tariff, from the catalog. A change replaces the server."),
        REPLACES_AND_PRICES,
    ]
    os: Annotated[
        m.OsSlug,
        Field(description="Image slug, from the catalog. A change replaces it, or as `rebuild` decides."),
        REBUILDS,
        Drift(lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12"),
    ]
    name: Annotated[m.ServerName, Drift(renamed)]
    months: Annotated[
        Annotated[WholeNumber, AfterValidator(OneOf(m.MONTHS))],
        Field(
            description="Months paid when ordering: 1, 3, 6 or 12. Not together with "
            "hours. Used at creation only."
        ),
        PRICES,
    ] = 1
    hours: Annotated[
        Annotated[WholeNumber, Field(le=720)] | None,
        Field(description="Hours paid when ordering an hourly server: 1 to 720. Used at creation only."),
        PRICES,
    ] = None
    billing_cycle: Annotated[
        Literal["monthly", "hourly"] | None,
        Field(description="monthly or hourly. A change replaces the server."),
        REPLACES_AND_PRICES,
    ] = None
    ssh_key_ids: Annotated[
        Annotated[list[IdText], AfterValidator(sorted_ids)] | None,
        Field(
            description="Ids of SSH keys to install; order does not matter, and another id of the same key "
            "is no change. A change has an effect only with rebuild set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True, unordered=True),
    ] = None
    password: Annotated[
        m.RootPassword | None,
        Field(
            description="Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter "
            "and a digit. Generated and shown once when absent. A change has an effect only with rebuild "
            "set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True),
    ] = None
    rebuild: Annotated[
        Literal["replace", "reinstall", "forbid"] | None,
        Field(
            description="What a change of os, ssh_key_ids or password does. replace: a new server is "
            "ordered and the old one deleted; reinstall: the same server, address and paid period, BUT ITS "
            "DISK IS ERASED; forbid: the change is refused. Without it a change of os replaces, and changed "
            "keys and passwords are for the next server: the present one keeps what it has."
        ),
        POLICY,
    ] = None
    promo_code: Annotated[
        m.PromoCode | None, Field(description="Promo code. Used at creation only."), PRICES
    ] = None
    custom_fields: Annotated[
        Annotated[dict[m.Line, m.Notes], Field(max_length=30)] | None,
        Field(
            description="Answers to the provider's extra order questions, up to 30. "
            "Matter when ordering only."
        ),
        WHEN_CREATING,
    ] = None
    auto_renew: bool | None = None
    notes: Annotated[
        Annotated[m.Notes, AfterValidator(_trimmed)] | None,
        Field(description="Free text shown in the control panel."),
    ] = None
    power: Annotated[
        Literal["running", "stopped"] | None,
        Field(description="running or stopped. Not managed when absent."),
        Drift(lambda value: "active" if value == "stopped" else "stopped", "status"),
    ] = None
    tariff: Annotated[
        m.ShortLine | None,
        Field(
            description="Name of the tariff, from the catalog, in place of tariff_id. It is resolved when "
            "the server is ordered; a later change of the catalog is no difference."
        ),
        Trait(policy=True, names="tariff_id", decides="price"),
    ] = None
    adopt_id: Annotated[
        IdText | None,
        Field(
            description="Take over this existing server instead of ordering one. Tariff and image must be "
            "the declared ones."
        ),
        ADOPTS,
    ] = None
    order_attempt: Annotated[
        Annotated[Count, Field(le=10**6)] | None,
        Field(
            description="Increment to force a new order after the provider refused to "
            "create a possible duplicate."
        ),
        WHEN_CREATING,
    ] = None

    def model_post_init(self, context: Any) -> None:
        self._check_period()
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

    def _check_bodies(self) -> None:
        """Build and check every body before anything is paid: the order's, and that of the change that
        follows it.
        """
        if self.tariff_id is None or self.os is None or self.name is None:  # not known yet
            return
        for id, make, where in (
            ("create_server", self.order_body, "custom_fields"),
            ("update_server", self._longest_change, "notes"),
        ):
            try:
                check_body(_OPERATIONS[id], make)
            except InvalidInput as error:
                field, reason = next(iter(error.fields.items()))
                field = field.split(".")[0] if field.split(".")[0] in type(self).model_fields else where
                raise ValueError(f"{field}: {reason}") from None

    def order_body(self) -> m.ServerCreate:
        """The body of ``POST /servers`` in one canonical form: what was not given is absent, hourly
        orders say so in both fields.
        """
        options: dict[str, Any] = {}
        if self.hours is not None or self.billing_cycle == "hourly":
            options |= {"hours": self.hours or 1, "billing_cycle": "hourly"}
        else:
            options["months"] = self.months
            if self.billing_cycle is not None:
                options["billing_cycle"] = self.billing_cycle
        if self.ssh_key_ids:
            options["ssh_key_ids"] = [int(key) for key in self.ssh_key_ids]
        if self.password is not None:
            options["password"] = self.password
        if self.promo_code is not None:
            options["promo_code"] = self.promo_code
        if self.custom_fields:
            options["custom_fields"] = dict(sorted(self.custom_fields.items()))
        options |= {name: getattr(self, name) for name in self.settings() - self.late() if name != "name"}
        return m.ServerCreate(tariff_id=self.tariff_id, os=self.os, name=self.name, **options)

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
    name: Annotated[str | None, ALWAYS, At()] = Field(
        default=None, description="Host name that the server was ordered with, or renamed to."
    )
    status: Annotated[str, At()] = Field(
        description="active, stopped, suspended, pending_cancel, cancelled or terminated; "
        "provisioning while being created."
    )
    tariff_id: Annotated[int | None, At("tariff.id")] = Field(
        default=None, description="Number of the tariff in the catalog; empty once the tariff is gone."
    )
    tariff: Annotated[str | None, At("tariff.name")] = Field(
        default=None, description="Name of the tariff that bills the server."
    )
    os: Annotated[str | None, At()] = Field(
        default=None, description="Slug of the installed image, such as debian-12."
    )
    os_shown: str | None = Field(
        default=None,
        description="Image slug that the API goes on showing after a reinstallation, "
        "where it does not follow.",
    )
    power: str | None = Field(
        default=None, description="running or stopped; empty while the service keeps it suspended."
    )
    ip: str | None = Field(
        default=None,
        description="Primary address: the one that was assigned first; empty while there is none.",
    )
    ips: list[str] = Field(default=[], description="Every address of the server, IPv4 and IPv6.")
    notes: Annotated[str | None, At()] = Field(
        default=None, description="Notes shown in the control panel, without the provider's tag."
    )
    auto_renew: Annotated[bool | None, At("billing.auto_renew")] = None
    billing_cycle: Annotated[str | None, At("billing.cycle")] = Field(
        default=None, description="Whether it is paid by the month (monthly) or by the hour (hourly)."
    )
    currency: Annotated[str | None, At("billing.currency")] = None
    next_due_at: Annotated[str | None, At("billing.next_due_at")] = None
    created_at: Annotated[str | None, At()] = Field(
        default=None,
        description="When the order was carried out (RFC 3339, UTC); empty for imported servers.",
    )
    invoice_id: str | None = Field(
        default=None, description="Invoice of the order; empty in the sandbox and for adopted servers."
    )
    charged: str | None = Field(
        default=None, description="What the order cost (decimal, in currency); empty for adopted servers."
    )
    root_password: Secret | None = Field(
        default=None, description="Root password, where it was shown or declared."
    )
    # Sent, and never shown by the API: kept as declared.
    ssh_key_ids: list[str] | None = Field(
        default=None, description="Ids of the SSH keys installed, as declared."
    )
    ssh_key_fingerprints: list[str] | None = Field(
        default=None,
        description="Fingerprints of the SSH keys installed, in the SHA256 form, "
        "where all of them were known.",
    )
    password: Secret | None = Field(default=None, description="Root password as declared.")
    ownership_tag: str | None = Field(
        default=None,
        description="Tag behind the notes on the account, as last written: tells whether a later "
        "run took the server over.",
    )


POWER = {"active": "running", "stopped": "stopped"}
KEPT = (
    "invoice_id",
    "charged",
    "root_password",
    "ssh_key_ids",
    "ssh_key_fingerprints",
    "password",
    "ownership_tag",
)


def from_api(server: m.Server) -> ServerState:
    """What the API shows."""
    notes, tag = split_tag(server.notes)
    values = shown(ServerState, server) | {
        "id": str(server.id),
        "ip": server.ip,
        "ips": sorted(server.ips or ([server.ip] if server.ip else []), key=lambda ip: (":" in ip, ip)),
        "notes": notes,
        "power": POWER.get(server.status),
        "ownership_tag": tag,
    }
    return ServerState(**values)


def remembering(state: ServerState, last: ServerState, *, is_test: bool = False) -> ServerState:
    """The state with what the API does not show, as it was. ``is_test``: with what was last written to a
    simulated server, too: responses need not show it, and only this account writes to it.
    """
    kept = {name: getattr(last, name) for name in KEPT} | {"currency": state.currency or last.currency}
    if last.os_shown and last.os_shown == state.os:
        kept |= {"os": last.os, "os_shown": state.os}
    if is_test and last.status and is_simulated(state.id):
        written = {name: getattr(last, name) for name in (*ServerInputs.settings(), "os", "power")}
        kept |= {name: value for name, value in written.items() if value is not None}
    return state.model_copy(update=kept)


def is_simulated(id: str) -> bool:
    """Whether the id is one of the sandbox's."""
    return (id_number(id) or 0) >= m.SANDBOX_SERVER_IDS


def provisional(order: m.Order, last: ServerState | None = None) -> ServerState:
    known = last.model_dump() | {name: getattr(last, name) for name in KEPT} if last else {}
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
