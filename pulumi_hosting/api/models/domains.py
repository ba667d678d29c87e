"""Bodies of domains (API document, "Domains")."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import PageQuery, PatchModel, RequestModel, Response
from pulumi_hosting.api.secrets import Secret


class Domain(Response):
    """``locked``: the registrar's transfer lock; ``blocked``: locked by staff. ``tld`` may carry a leading
    dot.
    """

    id: t.Id = Field(description="Number used to read, change and renew the domain.")
    name: str = Field(description="Full domain name in punycode, such as `xn--mnster-3ya.example`.")
    tld: str | None = t.optional(
        "Ending of the name, such as `.com`; some deployments leave out the dot in front."
    )
    status: t.DomainStatusText = Field(
        description="`pending` and `transfer_pending` until the registrar confirms, then `active`; "
        "`expired` after the last paid day; `cancelled` when it is given up or, on some deployments, locked "
        "by staff."
    )
    registered_at: t.Timestamp | None = t.optional(
        "When it was registered or transferred here; null until then."
    )
    expires_at: t.Timestamp | None = t.optional(
        "Last moment that is paid (RFC 3339, UTC), as the registrar has it; null while that is not known."
    )
    auto_renew: bool | None = t.optional("Whether the service renews it from the balance before it expires.")
    privacy: bool | None = t.optional("Whether the owner's data is hidden in WHOIS.")
    nameservers: list[str] | None = t.optional("Host names of its name servers.")
    locked: bool | None = t.optional(
        "Whether the registrar refuses to transfer it elsewhere; false until its first sync."
    )
    blocked: bool | None = t.optional("Whether staff locked it, so that every change is refused.")
    price_renew: t.Money | None = t.optional("Price of one more year.")
    currency: str | None = None
    created_at: t.Timestamp | None = t.optional("When the domain was ordered here.")

    @property
    def is_gone(self) -> bool:
        """Whether it is no longer on the account. One that staff locked may be called cancelled, and is."""
        return self.status == "cancelled" and self.blocked is not True


class Availability(Response):
    """``reason`` says why a name is not available: ``taken`` | ``premium`` | ``reserved`` | ``invalid`` |
    ``unsupported_tld``.
    """

    name: str | None = t.optional("The domain that was asked about.")
    available: bool = Field(description="Whether the domain can be registered now.")
    reason: Annotated[str, t.known("taken", "premium", "reserved", "invalid", "unsupported_tld")] | None = (
        t.optional("Why the domain cannot be registered; null if it can.")
    )
    premium: bool | None = t.optional("Whether the registry charges a special price for the name.")
    price_register: t.Money | None = t.optional("Price of its first year; null if it cannot be registered.")
    price_renew: t.Money | None = t.optional("Price of each further year; null if it cannot be registered.")
    currency: str | None = None
    min_years: int | None = t.optional("Fewest years that can be paid at once.")


def _known_domain(value: object) -> object:
    # While there is no record the object has no id: its name is all there is to know.
    return value.get("name") if isinstance(value, dict) and "id" in value and value["id"] is None else value


def _also_without_a_record(schema: dict[str, Any]) -> None:
    properties = {"id": {"type": ["integer", "null"]}, "name": {"type": "string"}}
    schema["anyOf"].append({"type": "object", "required": list(properties), "properties": properties})


class _DomainOutcome(Response):
    # The document shows the domain as an object, a live deployment its name.
    domain: Annotated[
        Domain | str | None, BeforeValidator(_known_domain), Field(json_schema_extra=_also_without_a_record)
    ] = t.optional("The domain, or on some deployments its name only.")
    id_given: int | None = Field(
        default=None,
        validation_alias=AliasChoices("domain_id", "id_given"),
        serialization_alias="domain_id",
        description="Number of the domain; null while there is no record of it, and in the sandbox.",
    )

    @property
    def domain_id(self) -> int | None:
        """Id of the domain record; ``None`` while there is none: look the name up in ``GET /domains``
        later."""
        return self.id_given or (self.domain.id if isinstance(self.domain, Domain) else None)

    @property
    def domain_name(self) -> str | None:
        return self.domain.name if isinstance(self.domain, Domain) else self.domain


class DomainOrderResult(_DomainOutcome):
    """``status``: ``registered`` (201) or ``pending`` (202: accepted, becomes active with a later sync)."""

    status: Annotated[str, t.known("registered", "pending")] = Field(
        description="`registered`, or `pending` until a later sync with the registrar makes it active."
    )
    zone: str | None = t.optional("Ending under which it was registered, without the dot in front.")
    years: int | None = t.optional("Number of years that were paid.")
    charged: t.Money = Field(
        description="What the registration cost, discount included; a decimal text in `currency`."
    )
    discount: t.Money | None = t.optional("What the promo code took off.")
    promo_code: str | None = t.optional("The promo code that counted; null if none did.")
    currency: str | None = None
    flat_expires_at: t.Timestamp | None = Field(
        default=None,
        validation_alias=AliasChoices("expires_at", "flat_expires_at"),
        serialization_alias="expires_at",
        description="Last moment that is paid; null while the registrar has not said.",
    )
    message: str | None = None
    balance_after: t.Money | None = None

    @property
    def expires_at(self) -> datetime | None:
        return self.flat_expires_at or (self.domain.expires_at if isinstance(self.domain, Domain) else None)


class DomainRenewResult(_DomainOutcome):
    """``status``: ``renewed``, ``pending_sync`` (accepted, the new date is not visible yet) or ``pending``
    (202).
    """

    status: Annotated[str, t.known("renewed", "pending_sync", "pending")] = Field(
        description="`renewed`; `pending_sync` when the registrar accepted and the new date shows later; "
        "`pending` when it has not answered yet."
    )
    years: int | None = t.optional("Number of years that this renewal added.")
    total_years: int | None = t.optional("Number of years that are paid after the renewal.")
    charged: t.Money = Field(description="What the renewal cost.")
    balance_after: t.Money | None = None
    currency: str | None = None
    flat_expires_at: t.Timestamp | None = Field(
        default=None,
        validation_alias=AliasChoices("expires_at", "flat_expires_at"),
        serialization_alias="expires_at",
        description="Last moment that is paid after the renewal; null with `pending_sync`.",
    )
    message: str | None = None

    @property
    def expires_at(self) -> datetime | None:
        return self.flat_expires_at or (self.domain.expires_at if isinstance(self.domain, Domain) else None)


class DomainTransferResult(_DomainOutcome):
    """``status``: ``transfer_pending`` and ``pending_transfer`` mean the same; ``pending``: the registrar did
    not answer in time.
    """

    status: Annotated[str, t.known("transfer_pending", "pending_transfer", "pending")] = Field(
        description="`transfer_pending` or `pending_transfer` while the transfer runs; `pending` when the "
        "registrar did not answer in time and the charge was kept."
    )
    charged: t.Money = Field(description="What the transfer cost.")
    currency: str | None = None
    message: str | None = None


def _unique_hosts(value: list[str]) -> list[str]:
    if len({host.rstrip(".").lower() for host in value}) != len(value):
        raise ValueError("name servers must be unique")
    return value


Nameservers = Annotated[
    list[t.HostName], Field(min_length=2, max_length=4), t.Constraint(_unique_hosts, uniqueItems=True)
]
Years = Annotated[int, Field(ge=1, le=10)]


class DomainRegister(RequestModel, example={"name": "example.com", "years": 1, "privacy": True}):
    """``years`` default 1; ``nameservers`` 2..4 unique host names, default the provider's own; ``privacy``
    default true in the document and false on some deployments, so send it; ``auto_renew`` is not accepted
    here by some: use the update instead."""

    name: t.DomainName = Field(description="Full domain name, in Unicode or punycode.")
    years: Years | None = t.optional("Years to pay, 1 to 10 within the bounds of the zone. Default: 1.")
    nameservers: Nameservers | None = t.optional(
        "2 to 4 different host names; some deployments take exactly 2. Default: the provider's own."
    )
    privacy: bool | None = t.optional(
        "Whether the owner's data is hidden in WHOIS. The default differs between deployments."
    )
    auto_renew: bool | None = t.optional(
        "Whether the domain is renewed automatically. Some deployments refuse it here; an update "
        "takes it everywhere."
    )
    promo_code: t.PromoCode | None = t.optional("Promo code, at most 64 characters.")


class DomainRenew(RequestModel, example={"years": 1}):
    years: Years = Field(description="Years to pay, 1 to 10.")


class DomainUpdate(PatchModel, example={"auto_renew": True}):
    """At least one field. ``privacy`` is applied at the registrar before the answer; a refusal saves
    nothing."""

    auto_renew: bool | None = t.optional("Whether the service renews the domain from the balance.")
    privacy: bool | None = t.optional("Whether the owner's data is hidden in WHOIS.")


class NameserversUpdate(RequestModel, example={"nameservers": ["ns1.example.net", "ns2.example.net"]}):
    """The whole set, 2..4 unique host names (some deployments take exactly two)."""

    nameservers: Nameservers = Field(
        description="2 to 4 different host names; some deployments take exactly 2."
    )


class DomainTransfer(RequestModel, example={"name": "example.net", "auth_code": "Xk7-93ab"}):
    """``auth_code`` is the EPP code of the current registrar. The other fields are accepted by some
    deployments only.
    """

    name: t.DomainName = Field(description="Full domain name, in Unicode or punycode.")
    auth_code: Annotated[Secret, Field(min_length=1, max_length=255)] = Field(
        description="EPP code of the current registrar."
    )
    nameservers: Nameservers | None = t.optional(
        "2 to 4 different host names; some deployments take exactly 2."
    )
    privacy: bool | None = t.optional("Whether the owner's data is hidden in WHOIS.")
    auto_renew: bool | None = t.optional("Whether the domain is renewed automatically.")


class AvailabilityQuery(RequestModel, example={"name": "example.com"}):
    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        description="Full domain name, in Unicode or punycode."
    )


class DomainListQuery(PageQuery):
    status: t.DomainStatus | None = t.optional("Only domains with this status.")
