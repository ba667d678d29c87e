"""Domains (API document, "Domains")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {
    "domains": (
        'Domains (API document, "Domains"). No operation deletes a domain. A domain that staff have locked '
        "refuses every write with ``DomainBlocked``."
    )
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "check_domain_availability",
        "GET /domains/availability",
        "domains.availability",
        "Whether a name can be registered, and its price",
        {200: m.Availability},
        ("domains:read",),
        query=m.AvailabilityQuery,
        expensive=True,
        codes=("upstream_error", "upstream_timeout"),
    ),
    Operation(
        "list_domains",
        "GET /domains",
        "domains.list",
        "Domains, newest first",
        {200: m.Page[m.Domain]},
        ("domains:read",),
        query=m.DomainListQuery,
    ),
    Operation(
        "get_domain",
        "GET /domains/{domain_id}",
        "domains.get",
        "One domain",
        {200: m.Domain},
        ("domains:read",),
    ),
    Operation(
        "register_domain",
        "POST /domains",
        "domains.register",
        "Register a domain: 201 registered, 202 accepted",
        {201: m.DomainOrderResult, 202: m.DomainOrderResult},
        ("domains:order",),
        request=m.DomainRegister,
        is_keyed=True,
        codes=("domain_taken", "domain_exists", "insufficient_funds", "upstream_rejected", "invalid_period"),
        description="``status`` is ``registered``, or ``pending`` until the registrar confirms. The balance "
        "is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    Operation(
        "set_domain_nameservers",
        "PUT /domains/{domain_id}/nameservers",
        "domains.set_nameservers",
        "Replace the name servers",
        {200: m.Domain},
        ("domains:manage",),
        request=m.NameserversUpdate,
        codes=("domain_blocked", "upstream_rejected", "conflict"),
        description="The whole set is replaced.",
    ),
    Operation(
        "update_domain",
        "PATCH /domains/{domain_id}",
        "domains.update",
        "Auto-renew, WHOIS privacy",
        {200: m.Domain},
        ("domains:manage",),
        request=m.DomainUpdate,
        codes=("domain_blocked", "upstream_rejected", "conflict"),
        description="Give at least one field. If the registrar refuses (``UpstreamRejected``), nothing is "
        "saved.",
    ),
    Operation(
        "renew_domain",
        "POST /domains/{domain_id}/renew",
        "domains.renew",
        "Pay further years in advance",
        {200: m.DomainRenewResult, 202: m.DomainRenewResult},
        ("domains:order",),
        request=m.DomainRenew,
        is_keyed=True,
        codes=("insufficient_funds", "domain_blocked", "upstream_rejected", "conflict"),
        description="``status`` is ``renewed``, or ``pending_sync`` or ``pending`` until the new date is "
        "known. The balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    Operation(
        "transfer_domain",
        "POST /domains/transfers",
        "domains.transfer",
        "Transfer a domain in with its auth code",
        {202: m.DomainTransferResult},
        ("domains:order",),
        request=m.DomainTransfer,
        is_keyed=True,
        codes=("domain_exists", "insufficient_funds", "upstream_rejected"),
        description="A transfer takes days. Some deployments ignore ``nameservers``, ``privacy`` and "
        "``auto_renew``: change them once the domain is there. The balance is charged at once; with "
        "``InsufficientFunds`` nothing is.",
    ),
)
