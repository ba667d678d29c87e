"""Values as people and frontends read them: money, times, ages, URLs."""

import re
from datetime import datetime, timedelta
from decimal import Decimal

_SECRETS_OF_URL = re.compile(r"(?<=//)[^/?#]+(?=@)|(?<=[?#]).+", re.DOTALL)


def duration(text: str) -> timedelta:
    """A number of days or hours. Raises ``ValueError`` for any other text.

    >>> duration("36h"), duration("7d") == timedelta(days=7)
    (datetime.timedelta(days=1, seconds=43200), True)
    """
    if (found := re.fullmatch(r"([0-9]{1,4})([dh])", text)) is None:
        raise ValueError("must be a number of days or hours, such as 7d or 36h")
    return timedelta(days=int(found[1])) if found[2] == "d" else timedelta(hours=int(found[1]))


def as_text(value: Decimal | datetime | int | None) -> str | None:
    """Money, time and ids as a state holds them: decimal digits, and RFC 3339 in UTC."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return None if value is None else str(value)


def name_in(label: str) -> str:
    """The name of a resource in its URN or its identity; a name itself.

    >>> name_in("urn:pulumi:dev::shop::hosting:index:Server::web"), name_in("pulumi:shop/dev/server/web")
    ('web', 'web')
    """
    return label.rpartition("::")[2].rpartition("/")[2]


def alias_option(name: str) -> str:
    """The option with which a Pulumi program says that a resource had this name before.

    >>> alias_option("web")
    'opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(name="web")])'
    """
    return f'opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(name="{name}")])'


def if_renamed(name: str | None) -> str:
    """The advice to a declaration that may have had another name in the program before; another one follows.
    Empty if that name is not known.
    """
    return f"if this resource was renamed from {name!r}, add {alias_option(name)}; else " if name else ""


def without_secrets(url: str) -> str:
    """The URL; in the place of user info, and of query and fragment, an ellipsis: they often hold a token. A
    token in the path stays, as it looks like any path.

    >>> without_secrets("https://me:word@example.com/x?token=1"), without_secrets("https://example.com/x")
    ('https://…@example.com/x?…', 'https://example.com/x')
    """
    return _SECRETS_OF_URL.sub("…", url)


def holds_secrets(url: str) -> bool:
    """Whether a URL has a part that :func:`without_secrets` leaves out."""
    return without_secrets(url) != url


def age(past: timedelta) -> str:
    """A length of time for people: minutes, hours, or days.

    >>> age(timedelta(seconds=10)), age(timedelta(minutes=125)), age(timedelta(days=9))
    ('0 min', '2 h', '9 days')
    """
    minutes = max(0, int(past.total_seconds()) // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
