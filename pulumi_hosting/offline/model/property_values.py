"""Property values as Pulumi's engine knows them.

A property map is a `dict[str, Any]` of None, bool, float or int, str, list, dict and the classes below.
Maps are never changed in place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Properties = dict[str, Any]

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a mark of the protocol, not a secret
RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"

UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWN_STRINGS = frozenset(
    {
        UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


class Unknown:
    """A value that is known after a create only. The one instance is `UNKNOWN`; it equals only itself."""

    def __repr__(self) -> str:
        return "<unknown>"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class SecretValue:
    """A secret value: encrypted in the state, hidden in the display."""

    value: object

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True)
class Output:
    """A value with its dependencies, as newer SDKs send it."""

    value: object
    known: bool = True
    secret: bool = False
    dependencies: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Output(…)"


@dataclass(frozen=True)
class ResourceReference:
    """A reference to a whole resource; `id` is None for components."""

    urn: str
    id: object = None
    version: str = ""

    def marked(self) -> Properties:
        """As it is sent and saved."""
        fields = {"urn": self.urn, "id": self.id, "packageVersion": self.version}
        return {SIGNATURE: RESOURCE_SIGNATURE} | {
            key: value for key, value in fields.items() if value not in (None, "")
        }


def bare(value: object) -> object:
    while isinstance(value, SecretValue):
        value = value.value
    return value


def plain_output(value: Output) -> object:
    inner = value.value if value.known else UNKNOWN
    return SecretValue(inner) if value.secret else inner


def mapped(value: object, change: Callable[[object], object]) -> object:
    """The same maps and lists with every other value changed."""
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, list) else change(value)


def without_outputs(value: object) -> object:
    """The same value with every `Output` replaced by its value."""

    def plain(value: object) -> object:
        if isinstance(value, SecretValue):
            return SecretValue(without_outputs(value.value))
        return without_outputs(plain_output(value)) if isinstance(value, Output) else value

    return mapped(value, plain)


def with_outputs(value: object) -> object:
    """The same value with every unknown or secret part as an `Output`."""

    def wrapped(value: object) -> object:
        if isinstance(value, SecretValue):
            known = not contains_unknowns(value.value)
            return Output(value.value if known else None, known, secret=True)
        return Output(None, known=False) if value is UNKNOWN else value

    return mapped(value, wrapped)


def without_secrets(value: object) -> object:
    """The same value with secrets in plain form: for comparisons, and for providers that do not know
    secrets.
    """
    return mapped(value, lambda item: without_secrets(item.value) if isinstance(item, SecretValue) else item)


def _contains(value: object, kind: type) -> bool:
    if isinstance(value, dict | list):
        return any(_contains(item, kind) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, kind) or (isinstance(value, SecretValue) and _contains(value.value, kind))


def contains_secrets(value: object) -> bool:
    return _contains(value, SecretValue)


def contains_unknowns(value: object) -> bool:
    return _contains(value, Unknown)


def mark_secrets(outputs: Properties, like: Properties) -> Properties:
    """`outputs` with a value marked secret wherever `like` holds a secret under the same key."""
    marked = dict(outputs)
    for key, before in like.items():
        if key not in marked:
            continue
        value = marked[key]
        if isinstance(value, dict) and isinstance(before, dict):
            marked[key] = mark_secrets(value, before)
        elif not isinstance(value, SecretValue) and contains_secrets(before):
            marked[key] = SecretValue(value)
    return marked


def hide_secrets(value: object) -> object:
    """A printable, JSON-able form: secrets replaced by `[secret]`, unknowns by their wire string."""

    def shown(value: object) -> object:
        if isinstance(value, SecretValue):
            return "[secret]"
        if isinstance(value, ResourceReference):
            return value.urn
        return UNKNOWN_STRING if value is UNKNOWN else value

    return mapped(value, shown)


def changed_keys(old: Properties, new: Properties) -> list[str]:
    """Keys whose value differs, secret or not, in order."""
    return sorted(
        key
        for key in old.keys() | new.keys()
        if without_secrets(old.get(key)) != without_secrets(new.get(key))
    )
