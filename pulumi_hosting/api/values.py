"""Rules of single values that a user writes: host names, domain names, SSH keys, URLs, notes. Pure functions,
no service is asked.

Each ``check_…`` gives its argument back unchanged or raises ``ValueError`` with a reason that does not repeat
the value. The request models (:mod:`~pulumi_hosting.api.models`) and the inputs of the resources use the same
rules, so that a value the API would refuse later is refused before money moves.
"""

import base64
import binascii
import hashlib
import ipaddress
import json
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

_SERVER_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
SERVER_NAME_PATTERN = rf"^{_SERVER_LABEL}(?:\.{_SERVER_LABEL})*$"
NAME_LENGTH = 253
"""Most characters of a name of a server or host."""
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LABELS = rf"{_LABEL}(?:\.{_LABEL})+\.?"
HOST_NAME_PATTERN = rf"^(?!.*\.[0-9]+\.?$){_LABELS}$"
DOMAIN_NAME_PATTERN = rf"^(?:{_LABELS}|(?=.*[^\x00-\x7f])[^\s.]{{1,63}}(?:\.[^\s.]{{1,63}})*\.?)$"
"""What a pattern can say; :func:`check_domain_name` also looks for characters that cannot be seen."""
KEY_TYPES = (
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
)
INT64 = 2**63 - 1
NOTES_BYTES = 60 * 1024
"""Most bytes of a server's notes as JSON. The API names no bound but 64 KB for a whole body, which also holds
the ownership tag.
"""

_ID = re.compile("[1-9][0-9]{0,18}")
_SERVER_NAME = re.compile(SERVER_NAME_PATTERN)
_HOST_NAME = re.compile(_LABELS)
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"
LINES_PATTERN = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$"
_LINE, _LINES = re.compile(LINE_PATTERN), re.compile(LINES_PATTERN)
_SURROGATES = re.compile("[\ud800-\udfff]")
# Characters that show nothing though Unicode counts them as letters, marks or symbols.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")


# --- ids


def id_number(value: object) -> int | None:
    """The number that an id of the API is, given as number or as digits; None for anything else.

    >>> id_number("20001"), id_number("0"), id_number("٢٠٠٠١"), id_number("order:1"), id_number(True)
    (20001, None, None, None, None)
    """
    if isinstance(value, str):
        value = int(value) if _ID.fullmatch(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= INT64:
        return value
    return None


def passes(check: Callable[[str], object], value: str) -> bool:
    """Whether a check lets the value through."""
    try:
        check(value)
    except ValueError:
        return False
    return True


# --- text


def check_line(value: str) -> str:
    """One line of text: no control characters, no half of a surrogate pair."""
    _check_characters(value, _LINE, "must not hold control characters or line breaks")
    return value


def _check_characters(value: str, allowed: re.Pattern[str], reason: str) -> None:
    if _SURROGATES.search(value):
        raise ValueError("is not valid Unicode: it holds half of a surrogate pair")
    if not allowed.fullmatch(value):
        raise ValueError(reason)


def check_notes(value: str) -> str:
    """Text of several lines: no control characters but line feed and tab, at most :data:`NOTES_BYTES` as
    JSON.
    """
    reason = "must not hold control characters other than line feed and tab"
    _check_characters(value, _LINES, reason)
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > NOTES_BYTES:
        raise ValueError(f"must be at most {NOTES_BYTES} bytes as JSON, and is {size}")
    return value


# --- host names


def check_server_name(value: str) -> str:
    """A server's name: labels of A-Z a-z 0-9 _ - between dots, of 1 to 63 characters, not beginning or ending
    with a hyphen.
    """
    if _SERVER_NAME.fullmatch(value) and len(value) <= NAME_LENGTH:
        return value
    if not re.fullmatch("[A-Za-z0-9._-]+", value):
        raise ValueError("may contain only A-Z a-z 0-9 . _ - and must not be empty")
    raise ValueError(
        "must be a host name: labels of 1 to 63 characters between dots, none beginning or ending with a "
        "hyphen, 253 characters in all"
    )


def check_host_name(value: str) -> str:
    """A host name of at least two labels (RFC 1123), never an IP address; a dot at the end is allowed."""
    if not _HOST_NAME.fullmatch(value) or len(value) > NAME_LENGTH:
        raise ValueError("must be a host name of at least two labels of letters, digits and hyphens")
    if not re.fullmatch(HOST_NAME_PATTERN, value):
        raise ValueError("must be a host name, not an IP address")
    return value


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine: ``localhost`` or a loopback address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- domain names


def check_domain_name(value: str) -> str:
    """A domain name in Unicode or punycode, without characters that cannot be seen.

    Zero-width and other invisible characters are dropped by the usual encoding, so that another domain would
    be bought than was written.
    """
    for character in value:
        category = unicodedata.category(character)
        if (
            category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")
            or character in _BLANK
            or "\ufe00" <= character <= "\ufe0f"  # these and the next select variants
            or "\U000e0100" <= character <= "\U000e01ef"
        ):
            raise ValueError(f"must not hold invisible characters or spaces: it holds U+{ord(character):04X}")
    if value.isascii():
        if not _HOST_NAME.fullmatch(value):
            raise ValueError(
                "must be a whole domain name such as example.com: labels of letters, digits "
                "and hyphens between dots"
            )
    elif any(not label or len(label) > 63 for label in value.removesuffix(".").split(".")):
        raise ValueError("must be a whole domain name such as example.com, each label of 1 to 63 characters")
    return value


_LATIN_LOOK_ALIKES = frozenset("аеорсухіјѕһԁԛԝвкмнтԍɡɩαοιρυνκτχωϲАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")


def look_alike(name: str) -> str | None:
    """Why a domain name may be taken for another: a label mixes alphabets, or has only letters that look
    Latin; ``None`` if neither.

    ``name`` may be in Unicode or in punycode. Japanese labels, which mix three scripts by nature, are not
    reported.

    >>> look_alike("example.com"), look_alike("münchen.example")
    (None, None)
    >>> look_alike("\\u0430pple.com")
    'its label "\\u0430pple" mixes Cyrillic and Latin letters'
    """
    for label in _unicode_labels(name):
        scripts = {_script(character) for character in label} - {""}
        alphabets = sorted(
            scripts & {"Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Georgian"}
        )
        if len(alphabets) > 1 or (alphabets and len(scripts) > 1 and alphabets != ["Latin"]):
            return f'its label "{label}" mixes {" and ".join(sorted(scripts))} letters'
        letters = {character for character in label if _script(character)}
        if letters and "Latin" not in scripts and letters <= _LATIN_LOOK_ALIKES:
            return (
                f'its label "{label}" has only {" and ".join(sorted(scripts))} letters that look like '
                "Latin ones"
            )
    return None


def _unicode_labels(name: str) -> list[str]:
    labels = []
    for label in name.removesuffix(".").split("."):
        if label.lower().startswith("xn--"):
            with suppress(UnicodeError):  # no punycode: what is written is what is seen
                label = label[4:].encode("ascii").decode("punycode")
        labels.append(unicodedata.normalize("NFC", label))
    return labels


def _script(character: str) -> str:
    """The alphabet a letter belongs to, by the first word of its Unicode name; empty for digits, marks and
    signs.
    """
    if not unicodedata.category(character).startswith("L"):
        return ""
    return unicodedata.name(character, "").partition(" ")[0].capitalize()


# --- SSH keys

_KEY_LINE = "must be one OpenSSH public key line, for example 'ssh-ed25519 AAAA… comment'"
_DAMAGED_KEY = "the public key is damaged or cut off: copy the whole line again"
_ECDSA_BYTES = {"nistp256": 32, "nistp384": 48, "nistp521": 66}


def check_public_key(value: str) -> str:
    """One line ``type base64 comment`` whose second word is a whole key of that type (RFC 4253, 5656,
    8709)."""
    words = value.split()
    if "\n" in value.strip() or "\r" in value.strip() or len(words) < 2 or words[0] not in KEY_TYPES:
        raise ValueError(_KEY_LINE)
    check_line(value.strip())
    if not _is_whole_key(words[0], words[1]):
        raise ValueError(_DAMAGED_KEY)
    return value


def fingerprint(public_key: str) -> str:
    """The ``SHA256:`` form of a key line ``type base64 comment``, as ``ssh-keygen -l`` prints it. Comment
    and spacing do not count.
    """
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _is_whole_key(kind: str, text: str) -> bool:
    try:
        # validate=True alone lets misplaced padding through.
        data = base64.b64decode(text.encode("ascii"), validate=True)
        if base64.b64encode(data).decode() != text:
            return False
        fields = _wire_fields(data)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return False
    if fields[0] != kind.encode():
        return False
    rest = fields[1:]
    if kind == "ssh-ed25519":
        return len(rest) == 1 and len(rest[0]) == 32
    if kind == "ssh-rsa":
        return len(rest) == 2 and all(map(_is_positive, rest)) and len(rest[1]) >= 96
    if kind == "ssh-dss":
        return len(rest) == 4 and all(map(_is_positive, rest))
    curve = kind.rpartition("-")[2]
    if len(rest) != 2 or rest[0] != curve.encode():
        return False
    size, point = _ECDSA_BYTES[curve], rest[1]
    return (len(point) == 2 * size + 1 and point[0] == 4) or (len(point) == size + 1 and point[0] in (2, 3))


def _wire_fields(data: bytes) -> list[bytes]:
    """The length-prefixed fields. Raises ``ValueError`` if one is cut off, or there is none."""
    fields = []
    while data:
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            raise ValueError("cut off")
        fields.append(data[4 : 4 + size])
        data = data[4 + size :]
    if not fields:
        raise ValueError("empty")
    return fields


def _is_positive(number: bytes) -> bool:
    """Whether the field is a positive number in its shortest form: without a sign bit or needless zeros."""
    return bool(number) and number[0] < 128 and (number[0] != 0 or (len(number) > 1 and number[1] >= 128))


# --- URLs


def check_webhook_url(value: str) -> str:
    """An ``https`` URL of a host that can be public, without credentials, spaces and control characters. What
    its name resolves to is for the service to say. (API document, "Webhooks")
    """
    host = check_https_url(value)
    if not is_public(host):
        what = f"must be an https:// URL of a public address, which {host} is not"
        raise PydanticCustomError("not_public", "{what}", {"what": what})
    return value


def is_public(host: str) -> bool:
    """Whether a name or an address can be public. Single labels, and unusual spellings of addresses such as
    ``0x7f.1`` and ``2130706433``, cannot.

    >>> [host for host in ("hooks.example.org", "localhost", "169.254.169.254", "0x7f.1") if is_public(host)]
    ['hooks.example.org']
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        *labels, last = host.lower().removesuffix(".").split(".")
        is_number = last.isdigit() or last.startswith("0x")
        return bool(labels) and not is_number and last not in ("localhost", "local", "internal")
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    is_global = inner.is_global and (address.is_global or inner is not address)
    return is_global and not inner.is_multicast and "%" not in host


def check_https_url(value: str) -> str:
    """The host of an ``https`` URL with a possible host and port. Raises ``ValueError``."""
    check_line(value)
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("must be an https:// URL with a possible host and port") from None
    if parts.scheme == "http":
        raise ValueError("must be an https:// URL, and begins with http://")
    if parts.scheme != "https" or parts.username is not None or any(c.isspace() for c in value):
        raise ValueError("must be an https:// URL of a public host, without credentials in it")
    if port == 0 or not _is_possible(host, is_address="[" in parts.netloc or ":" in host):
        raise ValueError("must be an https:// URL with a possible host and port")
    return host


def _is_possible(host: str, *, is_address: bool) -> bool:
    """Whether ``host`` can be an address, or else a name too: of one label too, and in Unicode too."""
    name = host if "." in host else f"{host}.example"
    return passes(ipaddress.ip_address, host) or (not is_address and passes(check_domain_name, name))
