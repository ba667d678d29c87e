"""The numbered differences between the API document and a live deployment that exclude each other.

``spec``, the default, is what the document says; ``live`` what a live deployment is known to answer. The
numbers are those of the table of differences in the service's description. Fields with two names are not
listed: both names are always sent.
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

T = TypeVar("T")

Dialect = Literal["spec", "live"]


@dataclass(frozen=True, slots=True)
class Deviation(Generic[T]):
    number: int
    topic: str
    spec: T
    live: T

    def __call__(self, dialect: str) -> T:
        return self.live if dialect == "live" else self.spec


REFUND = Deviation(6, "`refund` of a deletion: an object with `amount`, or the amount", "object", "money")
WITHDRAWN_FLAG = Deviation(6, "`cancel_request_withdrawn` in a deletion", True, False)
EXCLUDED_REASONS = Deviation(
    7,
    "reasons why nothing is refunded",
    {
        # The document has four reasons; the others are mapped to the nearest of them.
        "hourly": "unpaid",
        "consumed": "unpaid",
        "service_state": "no_payment_record",
    },
    {},
)
ORDER_HOURS = Deviation(8, "hours of an hourly order", range(1, 721), range(1, 2))
RENEW_HOURS = Deviation(9, "hours of a renewal", range(1, 721), range(1, 2161))
ADDRESS_ORDER_STATUS = Deviation(15, "status of buying an address", 200, 201)
ADDRESS_READS_EXPENSIVE = Deviation(17, "address list and quote in the expensive bucket", False, True)
NAMESERVER_COUNT = Deviation(21, "number of name servers", range(2, 5), range(2, 3))
PRIVACY_DEFAULT = Deviation(22, "`privacy` when a registration does not say", True, False)
AUTO_RENEW_AT_REGISTRATION = Deviation(23, "`auto_renew` accepted at registration", True, False)
REGISTERED_DOMAIN = Deviation(24, "`domain` of a registration: an object, or the name", "object", "name")
RENEWED_DOMAIN = Deviation(25, "`domain` of a renewal: an object, or the name", "object", "name")
PENDING_RENEWAL = Deviation(
    25, "a renewal whose new date is not visible yet", (200, "pending_sync"), (202, "pending")
)
TRANSFER_STATUS = Deviation(27, "`status` of a transfer", "transfer_pending", "pending_transfer")
BLOCKED_DOMAIN_STATUS = Deviation(28, "`status` of a blocked domain (none: its own)", None, "cancelled")
INVOICE_TYPES = Deviation(
    30,
    "invoice types",
    {},
    {
        "ip_purchase": "vds_addon",
        "domain_registration": "domain_purchase",
        "domain_transfer": "domain_purchase",
    },
)
HOURLY_BREAKDOWN = Deviation(
    49, "`breakdown` of an hourly server's refund: per paid invoice, or empty", True, False
)
DELIVERY_PAYLOAD = Deviation(
    38, "`payload` of a delivery wherever one is shown, or only in the read of one", True, False
)
PREVIOUS = Deviation(
    42, "`data.previous` of an event without a previous state: null, or absent", "null", "absent"
)

DIFFERENCES: tuple[Deviation[Any], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Deviation)
)


def invoice_types_meant(filter: str) -> frozenset[str]:
    """The invoice types that a filter selects, in the words of either dialect."""
    meant = {own for own, live in INVOICE_TYPES.live.items() if live == filter}
    return frozenset(meant or {filter})
