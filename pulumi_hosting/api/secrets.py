"""Secrets that do not print, and foreign text made safe to print.

Everything a person may read (exceptions, logs, results, diffs) passes through here: a secret is a
:class:`Secret` as long as it travels, and a :class:`Redactor` removes known secrets from foreign text, the
messages of the service included.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn
from urllib.parse import quote

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema, from_json, to_json

MASK = "**********"
REVEALED: Mapping[str, object] = {"secrets": "revealed"}
"""The context with which a model is serialised with its secrets: the body of a request, and what
``to_dict(reveal=True)`` gives."""

SECRET_FIELDS = frozenset(("password", "root_password", "auth_code", "secret", "token", "api_key"))
"""Names of fields that hold a secret, in any body of the API."""
_SECRET_ENDINGS = ("_password", "_secret", "_token", "_private_key")

# C0 and C1 controls, ANSI sequences and the Unicode characters that reorder text: none may reach a terminal
# or a log.
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]")
# API keys and webhook secrets, wherever they are in a text.
_TOKEN = re.compile(r"(?:vk_(?:live|test)|whsec)_[A-Za-z0-9_.\-]+")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Secret:
    """A text that is shown by nothing: not by ``str``, ``repr``, ``format`` or a traceback, and that refuses
    to be pickled.

    ``reveal()`` gives the text to the one place that needs it. Two secrets are equal when their texts are.
    """

    __slots__ = ("_text",)

    def __init__(self, text: "str | Secret") -> None:
        self._text: str = text._text if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """The text itself. Never log or format what this returns."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __len__(self) -> int:
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(("Secret", self._text))

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a Secret cannot be pickled or copied into a file; call reveal() where it is really needed"
        )

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "Secret":
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        # hide_input: a failed check of a secret must not print the value it refused.
        from_text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True))
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                _to_json, info_arg=True, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "format": "password"}


def _to_json(secret: Secret, info: SerializationInfo) -> str:
    """A mask in a file would lose what is shown once."""
    if info.context is not REVEALED:
        raise PydanticSerializationError(
            "this holds a secret, which JSON would show or lose. Next: to_dict(reveal=True) to save the "
            "secret too, or exclude its field"
        )
    return secret.reveal()


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret, by what this version knows and by what its name says."""
    return name in SECRET_FIELDS or name.endswith(_SECRET_ENDINGS)


class HiddenObject(dict[str, Any]):
    """A JSON object whose values are not printed: ``repr`` shows the names of its fields."""

    def __repr__(self) -> str:
        return f"<JSON object with {', '.join(self) or 'no fields'}>"

    __str__ = __repr__


def shielded(node: object) -> Any:
    """Parsed JSON as it came, but for two things: texts under the names of secrets are ``Secret``, and no
    object prints its values, which may be secrets of a later version.
    """
    if isinstance(node, dict):
        return HiddenObject(
            {
                name: Secret(value)
                if isinstance(value, str) and value and is_secret_name(name)
                else shielded(value)
                for name, value in node.items()
            }
        )
    return [shielded(item) for item in node] if isinstance(node, list) else node


def clean_text(text: str, limit: int = 1000) -> str:
    """``text`` without control characters, terminal sequences and text-reordering marks, on one line, at most
    ``limit`` long.
    """
    flat = _UNSAFE.sub("", _ANSI.sub("", text.replace("\r", " ").replace("\n", " ").replace("\t", " ")))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def without_tokens(text: str) -> str:
    """``text`` with every API key and webhook secret masked, known or not.

    >>> without_tokens("key vk_live_abc and secret whsec_def")
    'key ********** and secret **********'
    """
    return _TOKEN.sub(MASK, text)


def quoted(value: object) -> str:
    """A value as a message repeats it: short, on one line, without keys.

    >>> quoted("abc"), quoted("vk_live_abc"), quoted(5)
    ("'abc'", "'**********'", "'5'")
    """
    return repr(without_tokens(clean_text(str(value), 80)))


class Redactor:
    """Removes known secrets from text: plain, URL-quoted and base64."""

    def __init__(self, secrets: Iterable[Secret | str | None] = (), *, own_key: Secret | None = None) -> None:
        own = _spellings(own_key)
        self._own = tuple(spelling.encode() for spelling in own)
        self._spellings = own.union(*map(_spellings, secrets))

    def without_own_key(self, body: bytes) -> bytes:
        """The JSON of an answer without the key it was asked with: a service that echoes it must not put it
        into results.

        Free of cost where the key is not in it, and not hidden in escapes.
        """
        if b"\\" in body and _ESCAPED_ASCII.search(body):
            with suppress(ValueError):
                body = to_json(from_json(body))
        for spelling in self._own:
            if spelling in body:
                body = body.replace(spelling, MASK.encode())
        return body

    def __call__(self, text: str) -> str:
        for spelling in sorted(self._spellings, key=len, reverse=True):
            text = text.replace(spelling, MASK)
        return text

    def __repr__(self) -> str:
        return f"<Redactor of {len(self._spellings)} spellings>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Redactor holds secrets and cannot be pickled")


def _spellings(secret: Secret | str | None) -> set[str]:
    """Texts of fewer than four characters have none: they occur everywhere."""
    text = secret.reveal() if isinstance(secret, Secret) else secret
    if not text or len(text) < 4:
        return set()
    raw = text.encode()
    coded = (base64.b64encode(raw), base64.urlsafe_b64encode(raw))
    return {text, quote(text, safe=""), *(code.decode() for code in coded)}
