"""Timestamps, money and seconds as the API writes them."""

from datetime import UTC, datetime
from decimal import Decimal
from email.utils import formatdate
from functools import lru_cache

CENT = Decimal("0.01")


@lru_cache(1024)
def format_timestamp(moment: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC; ``None`` stays ``None``."""
    if moment is None:
        return None
    text = datetime.fromtimestamp(moment, UTC).isoformat(
        timespec="seconds" if moment == int(moment) else "milliseconds"
    )
    return text.replace("+00:00", "Z")


def format_http_date(moment: float) -> str:
    """Unix seconds as a ``Date`` header (IMF-fixdate), rounded down to the second."""
    return _http_date(int(moment // 1))


@lru_cache(16)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)


def parse_timestamp(text: str) -> float:
    """Unix seconds of an RFC 3339 timestamp with ``Z`` or an offset; ``ValueError`` for anything else."""
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError("a timestamp needs Z or an offset")
    return value.timestamp()


def format_money(value: Decimal) -> str:
    """A money string: two fraction digits, up to four if the value has them (hourly prices)."""
    return f"{value:.2f}" if value == value.quantize(CENT) else f"{value.normalize():f}"


def format_seconds(value: float) -> str:
    """Seconds for a header, without a fraction if it is zero."""
    return str(int(value)) if value == int(value) else str(value)


def uuid4_from_bytes(raw: bytes) -> str:
    text = raw[:16].hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[raw[8] >> 4 & 3]}{text[17:20]}-{text[20:]}"
