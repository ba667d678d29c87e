"""Makes texts of two runs on two machines the same: ids, times, ports, keys and paths get names."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

START = 1_870_934_400.0
"""2029-04-15T08:00:00Z: the time at which every script begins. The days that follow have names."""
_KINDS = {
    "2": "server",
    "3": "address",
    "4": "invoice",
    "5": "movement",
    "6": "ssh-key",
    "7": "domain",
    "8": "subscription",
    "9": "delivery",
}
"""First digit of an id of five → what the emulator numbers so."""
_ID = re.compile(r"(?<![\w.#-])([2-9])00\d\d(?![\w-]|\.\d)")
_SIMULATED = re.compile(r"\b9000000\d{3}\b")
"""Ids of what was made with a test key."""
_TIME = r"[T ]\d\d(?::|%3A)\d\d(?:(?::|%3A)\d\d)?(?:\.\d+)?"
_DATE = re.compile(rf"(?<!\d)(\d{{4}}-\d\d-\d\d)(?:{_TIME})?(?:Z| UTC|\+00:00)?(?![\d-])")
_FIRST_DAY = datetime.fromtimestamp(START, UTC).date()
_DIFFERS = (
    (re.compile(r"127\.0\.0\.1:\d{2,}"), "<emulator>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<request>"),
    (re.compile(r"(?<=/servers/)(?!9007199254740991)\d{16}(?=/renew)"), "<no-server>"),
    (re.compile(r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])"), "<version>"),
    (re.compile(r"(?<=this machine's clock is )\d+(?= s )|(?<=\"seconds_ahead\": )-?\d+"), "<seconds>"),
    (re.compile(r"(?<=a time of its own, )\d+(?= s )"), "<seconds>"),
    (re.compile(r"^\| Duration: .*\n", re.MULTILINE), ""),
    (re.compile(r"(?<=^\| localhost) +(?=: ok=)", re.MULTILINE), " "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
    (re.compile(r"\*{4,}$", re.MULTILINE), "***"),
)


class Names:
    """The names of one script. The same value keeps its name; names are given as they come.

    ``paths``: path → its name.
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = sorted(paths.items(), key=lambda item: -len(item[0]))
        self._ids: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def know_key(self, key: str) -> str:
        """The name of an idempotency key, which is replaced from now on."""
        if key not in self._keys:
            self._keys[key] = self._new("key")
        return self._keys[key]

    def normal(self, text: str) -> str:
        for path, name in self._paths:
            text = text.replace(path, name)
        for key, name in self._keys.items():
            text = text.replace(key, name)
        for pattern, name in _DIFFERS:
            text = pattern.sub(name, text)
        text = _DATE.sub(_day, text)
        text = _SIMULATED.sub(lambda found: self._id(found[0], "simulated"), text)
        return _ID.sub(lambda found: self._id(found[0], _KINDS[found[1]]), text)

    def _id(self, id: str, kind: str) -> str:
        if id not in self._ids:
            self._ids[id] = self._new(kind)
        return self._ids[id]

    def _new(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"<{kind}-{self._counts[kind]}>"


def _day(found: re.Match[str]) -> str:
    """Days from the start on are the same in each run; earlier ones are this machine's."""
    try:
        days = (datetime.fromisoformat(found[1]).date() - _FIRST_DAY).days
    except ValueError:
        return found[0]
    return f"<day {days}>" if days >= 0 else "<time>"
