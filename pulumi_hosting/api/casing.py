"""Names in other spellings. Loads nothing, since every program of a user loads it."""

from functools import cache


@cache
def camel(name: str) -> str:
    """``tariff_id`` → ``tariffId``; names beginning ``__`` stay."""
    if name.startswith("__"):
        return name
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
