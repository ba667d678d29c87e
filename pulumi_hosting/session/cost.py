"""What making something charges."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Cost:
    """What making something charges. ``amount`` is a decimal in ``currency``; ``what`` says for what it
    is paid.
    """

    amount: Decimal
    currency: str
    what: str
    balance: Decimal | None = None
