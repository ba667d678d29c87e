"""What making something charges."""

from dataclasses import dataclass
from decimal import Decimal

from pulumi_hosting.session.errors import ResourceError


@dataclass(frozen=True, slots=True)
class Cost:
    """What making something charges. ``amount`` is a decimal in ``currency``; ``what`` says for what it
    is paid. Raises ``ResourceError`` if the amount is negative.
    """

    amount: Decimal
    currency: str
    what: str
    balance: Decimal | None = None

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ResourceError(
                f"the service names a price of {self.amount} {self.currency} for {self.what}, and a price "
                "cannot be negative; nothing is ordered. Next: run again later, or report it to the provider"
            )
