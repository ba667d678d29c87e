"""What making something charges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from pulumi_hosting.session.errors import ResourceError


@dataclass(frozen=True, slots=True)
class Cost:
    """What making something charges. ``amount`` is a decimal in ``currency``; ``what`` says for what it
    is paid. Raises ``ResourceError`` if the amount is negative.

    ``choices``: if one of several is bought, by its name, for what it would be paid. The amount is then the
    highest of them.
    """

    amount: Decimal
    currency: str
    what: str
    balance: Decimal | None = None
    choices: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ResourceError(
                f"the service names a price of {self.amount} {self.currency} for {self.what}, and a price "
                "cannot be negative; nothing is ordered. Next: run again later, or report it to the provider"
            )

    def __str__(self) -> str:
        """
        >>> str(Cost(Decimal("5.00"), "EUR", "VDS-1, 1 month"))
        '5.00 EUR (VDS-1, 1 month)'
        """
        return f"{'at most ' if self.choices else ''}{self.amount} {self.currency} ({self.what})"
